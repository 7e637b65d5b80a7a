/**
 * The backups in a directory: their names, and which of them are deleted. Only complete backups of the same vault are,
 * by their names and beginnings, and never the one that was just written.
 */
import { closeSync, lstatSync, openSync, readdirSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { BackupHeader } from '../../backup/records.ts';
import { UsageError } from '../../platform/errors.ts';
import { parseDuration } from '../flags.ts';

/** The vault's id, the time in UTC, and the last entry. */
const NAME = /^leasehold-([A-Za-z0-9_-]{22})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-(\d+)\.age$/;
const INTRO = 'age-encryption.org/v1\n';

/** How many backups to keep, or how old they may become. */
export type Retention =
  | { readonly kind: 'count'; readonly count: number }
  | { readonly kind: 'age'; readonly ms: number };

export interface KeptBackup {
  readonly name: string;
  readonly vaultId: string;
  /** Milliseconds since 1970, to the second. */
  readonly takenAt: number;
  readonly seq: number;
}

export function backupName({ vault_id, created_at, log_end }: BackupHeader): string {
  const time = created_at.replace(/\.\d+Z$/, 'Z').replaceAll(/[-:]/g, '');
  return `leasehold-${vault_id}-${time}-${log_end?.seq ?? 0}.age`;
}

/** `28` is a number of backups, `7d` an age. @throws UsageError */
export function parseRetention(given: string, field: string): Retention {
  const count = /^[1-9]\d{0,5}$/.test(given) ? Number(given) : null;
  if (count !== null) return { kind: 'count', count };
  const seconds = /[smhdw]$/.test(given) ? parseDuration(given) : null;
  if (seconds !== null && seconds > 0) return { kind: 'age', ms: seconds * 1000 };
  throw new UsageError(`${field}: must be a number of backups, such as 28, or an age, such as 7d`);
}

/** The complete backups of any vault, newest first. */
export function listBackups(dir: string): KeptBackup[] {
  const found = readdirSync(dir).flatMap((name): KeptBackup[] => {
    const [, vaultId = '', year, month, day, hour, minute, second, seq] = NAME.exec(name) ?? [];
    const takenAt = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
    return Number.isNaN(takenAt) || !isEncrypted(join(dir, name)) ? [] : [{ name, vaultId, takenAt, seq: Number(seq) }];
  });
  return found.sort((a, b) => b.takenAt - a.takenAt || b.seq - a.seq);
}

/** A backup gets its name when it is complete; on a file system without hard links a crash may leave an empty file. */
function isEncrypted(file: string): boolean {
  if (!lstatSync(file).isFile()) return false;
  const descriptor = openSync(file, 'r');
  try {
    const beginning = Buffer.alloc(INTRO.length);
    return readSync(descriptor, beginning) === INTRO.length && beginning.toString('latin1') === INTRO;
  } finally {
    closeSync(descriptor);
  }
}

const UNFINISHED = /^\.[0-9a-f-]{36}\.new$/;
/** A file this old is left from a command that was killed. */
const MIN_UNFINISHED_AGE_MS = 86_400_000;

/** Deletes the temporary files of commands that were killed. */
export function deleteUnfinished(dir: string, now: number): void {
  for (const name of readdirSync(dir).filter((each) => UNFINISHED.test(each))) {
    const found = lstatSync(join(dir, name), { throwIfNoEntry: false });
    if (found?.isFile() === true && now - found.mtimeMs > MIN_UNFINISHED_AGE_MS)
      rmSync(join(dir, name), { force: true });
  }
}

/** Call it only after the backup `written` was written and verified. Returns the names of the deleted ones. */
export function deleteOld(dir: string, written: string, retention: Retention, now: number): string[] {
  const all = listBackups(dir);
  const newest = all.find(({ name }) => name === written);
  if (newest === undefined) return [];
  const others = all.filter(({ name, vaultId }) => vaultId === newest.vaultId && name !== written);
  // A backup with a later time was written while a clock was wrong, so nothing is known about its age.
  const isDated = ({ takenAt }: KeptBackup): boolean => takenAt <= newest.takenAt;
  const ranked = [...others.filter(isDated), ...others.filter((each) => !isDated(each))];
  const isOld = ({ takenAt }: KeptBackup, index: number): boolean =>
    retention.kind === 'count' ? index + 1 >= retention.count : now - takenAt > retention.ms;
  const old = ranked.filter(isOld).map(({ name }) => name);
  for (const name of old) rmSync(join(dir, name), { force: true });
  return old;
}
