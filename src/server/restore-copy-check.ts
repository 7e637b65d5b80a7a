/** Checks the committed copy of a restore before it is published: what opens its keys, and its state. */

import { isDeepStrictEqual } from 'node:util';
import { damaged } from '../backup/errors.ts';
import type { BackupHeader } from '../backup/records.ts';
import { encodeStoredKeys } from '../backup/stored-keys.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { startClock } from '../ledger/clock.ts';
import type { Store } from '../store/port.ts';
import { readStoredKeys } from '../store/vault-metadata.ts';
import { StateChecker } from '../vault/verification/state-checker.ts';

/** How many of them a message names. */
const MAX_NAMED = 3;
const MAX_SHOWN_LENGTH = 200;

interface CommittedCopy {
  readonly copy: Store;
  readonly header: BackupHeader;
  /** They opened with what the header has. */
  readonly keys: VaultKeys;
  readonly signal: AbortSignal;
}

/** What does not verify, one sentence each. @throws BackupError if the copy could not be opened, StoreError */
export async function checkCopy({ copy, header, keys, signal }: CommittedCopy): Promise<string[]> {
  const stored = encodeStoredKeys(await copy.run(readStoredKeys()));
  const { keyset, slots }: typeof stored = JSON.parse(JSON.stringify(stored));
  if (!isDeepStrictEqual([keyset, slots], [header.keys.keyset, header.keys.slots])) {
    throw damaged('its keyset or its key slots differ from those in its header');
  }
  const state = new StateChecker({ store: copy, keys, clock: startClock(0) });
  const { problemCount, problems } = await state.check(signal, false);
  if (problemCount === 0) return [];
  const named = problems.slice(0, MAX_NAMED).map(({ subject, problem }) => `${printable(subject)} ${problem}`);
  const others = problemCount > MAX_NAMED ? ', …' : '';
  return [`the state differs from the log in ${problemCount} places (${named.join(', ')}${others})`];
}

/** The log of a backup from elsewhere may name any subject. */
function printable(subject: string): string {
  return JSON.stringify(subject.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_SHOWN_LENGTH));
}
