/** Key slots as commands name them, and the secret of a slot, which is computed from a passphrase on this machine. */
import type { SlotParameters } from '../core/keyset.ts';
import { passphraseSecret } from '../crypto/passphrase.ts';
import { UsageError } from '../platform/errors.ts';
import { readNewPassphrase, readPassphrase } from './passphrase.ts';
import type { Question } from './prompt.ts';

interface PassphraseSlot {
  readonly kind: string;
  readonly name: string;
  readonly parameters: SlotParameters;
}

/** Names and kinds in one line, for a question. */
export function describeSlots(slots: readonly { readonly name: string; readonly kind: string }[]): string {
  return slots.map(({ name, kind }) => `${name} (${kind})`).join(', ');
}

/** `from`: a file, or null to ask. A new passphrase is asked twice. @throws UsageError */
export async function slotSecretOf(
  question: Question,
  { name, parameters }: PassphraseSlot,
  from: string | null,
  isNew: boolean,
): Promise<Uint8Array> {
  const read = isNew ? readNewPassphrase : readPassphrase;
  const passphrase = await read(question, from, `Passphrase of the key slot ${name}`);
  const secret = await passphraseSecret(passphrase, parameters);
  if (secret !== null) return secret;
  throw new UsageError(
    `the parameters of the key slot ${name} are invalid, or outside the bounds in docs/formats.md: they may have been altered`,
  );
}
