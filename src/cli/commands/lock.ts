/** The `lock` and `unlock` subcommands. */
import { isLoopback } from '../../client/address.ts';
import { parseShare } from '../../crypto/shares.ts';
import { parseRootKey } from '../../crypto/vault-keys.ts';
import { text } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { Secret } from '../../vault/credentials/credential.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, type Invocation } from '../command.ts';
import { describeSlots, readSecretFile, slotSecretOf } from '../passphrase.ts';
import { askHidden, confirmDestructive } from '../prompt.ts';
import type { Settings } from '../settings/settings.ts';
import { printNotice } from '../terminal.ts';

const lock = defineCommand({
  name: 'lock',
  about: [
    'Every later request fails with VAULT_LOCKED until leasehold unlock, or until a restart opens a slot. Without a slot that opens, the vault is lost: test one first with leasehold key slot test.',
  ],
  flags: CONFIRMATION_FLAGS,
  async run(invocation, flags) {
    const vault = invocation.connect();
    const describe = async (): Promise<string> => {
      const slots = await vault.keys.slots(invocation);
      return `The vault will serve nothing until one of these slots opens it: ${describeSlots(slots)}.`;
    };
    if (!(await confirmDestructive(invocation, flags, describe, 'Lock it?'))) return;
    await invocation.output.record(await vault.keys.lock(invocation));
  },
});

const unlock = defineCommand({
  name: 'unlock',
  about: [
    'Works over a Unix socket or from the machine of the server only. The passphrase stays on this machine; the server receives the secret that follows from it. It goes to the server of the data directory, which proves itself first, or to the address that you name; never to the default address. Shares are given one at a time, by any of their holders, within ten minutes of each other.',
  ],
  flags: {
    slot: text('NAME', 'key slot to open (default: the only one)'),
    'passphrase-file': text('FILE', 'read the passphrase from this file; - for standard input'),
    'share-file': text('FILE', 'read one share from this file; - for standard input'),
    'root-key-file': text('FILE', 'open the slot of this root key'),
  },
  examples: [
    { line: 'leasehold unlock', does: 'ask for the passphrase or a share' },
    {
      line: 'leasehold unlock --address unix:/run/leasehold/socket',
      does: "give a share from an account other than the server's",
    },
  ],
  async run(invocation, flags) {
    const { terminal, signal, output } = invocation;
    const files = [flags['passphrase-file'], flags['share-file'], flags['root-key-file']];
    if (files.filter((file) => file !== null).length > 1) throw new UsageError('give one file only');
    assertMayReceiveSecret(invocation.settings);
    const secret = await readSecret(invocation, flags);
    const progress = await invocation.connect(true).keys.unlock(secret, { signal });
    await output.record(progress);
    if (progress.status === 'locked')
      printNotice(terminal, `Given: ${progress.shares_given} of ${progress.shares_needed} shares.`);
    if (progress.status === 'rolled_back')
      printNotice(terminal, 'The log has lost entries. See leasehold audit accept-rollback --dry-run.');
  },
});

/**
 * INVARIANT: a secret is sent only to a server that proved itself by its data directory, or to a loopback address that
 * the user named, trusts or is logged in to. Any program may listen on the default address. @throws UsageError
 */
function assertMayReceiveSecret({ address, dataDir }: Settings): void {
  const { value, source, level } = address;
  if (level === 'default') {
    throw new UsageError(
      `No server has published its address in ${dataDir.value}, and another program may listen on ${value}. Start the server, or name its address with --address`,
    );
  }
  if (value.startsWith('unix:') || isLoopback(URL.parse(value)?.hostname ?? '')) return;
  throw new UsageError(
    `${source}: ${value} is not an address of this machine. Run leasehold unlock on the machine of the server, with --address unix:/PATH or a loopback address`,
  );
}

type UnlockFlags = Readonly<Record<'slot' | 'passphrase-file' | 'share-file' | 'root-key-file', string | null>>;

/** @throws UsageError */
async function readSecret(invocation: Invocation, flags: UnlockFlags): Promise<Secret> {
  const { 'root-key-file': rootKeyFile, 'share-file': shareFile } = flags;
  if (rootKeyFile !== null) {
    const key = parseRootKey(await readSecretFile(invocation, rootKeyFile));
    if (key === null) throw new UsageError(`${rootKeyFile} must contain 32 bytes as base64, on one line`);
    return new Secret(Buffer.from(key).toString('base64'));
  }
  if (shareFile !== null) return checkedShare(new Secret(await readSecretFile(invocation, shareFile)));
  const slots = await invocation.connect(true).keys.attendedSlots(invocation);
  const fitting = slots.filter(({ name, kind }) =>
    flags.slot === null ? ['passphrase', 'shamir'].includes(kind) : name === flags.slot,
  );
  const wanted = flags['passphrase-file'] === null ? fitting : fitting.filter(({ kind }) => kind === 'passphrase');
  const [slot, ...others] = wanted;
  if (slot === undefined || others.length > 0) {
    const names = slots.map(({ name }) => name).join(', ');
    throw new UsageError(`--slot must name one of the key slots: ${names}`);
  }
  if (slot.kind === 'shamir') return checkedShare(await askHidden(invocation, `Share of the key slot ${slot.name}`));
  if (slot.kind !== 'passphrase')
    throw new UsageError(`${slot.name} is a slot of the kind ${slot.kind}, which no person opens`);
  const bytes = await slotSecretOf(invocation, slot, flags['passphrase-file'], false);
  return new Secret(Buffer.from(bytes).toString('base64'));
}

/** @throws UsageError for a mistyped share, which is not sent */
function checkedShare(given: Secret): Secret {
  const words = given.reveal().trim();
  if (parseShare(words) !== null) return new Secret(words);
  throw new UsageError('this is not a share: a letter is missing or was mistyped');
}

export const LOCK_COMMANDS: readonly Command[] = [lock, unlock];
