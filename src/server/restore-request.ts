/**
 * Reads the flags and variables of a restore, and prints its report. It never prints a URL, because one may contain a
 * password.
 */
import { type Opener, parseIdentities } from '../backup/encryption.ts';
import { parseVerifierKey, verifierKey } from '../crypto/checkpoint.ts';
import type { Environment } from '../flags/flag.ts';
import { UsageError } from '../platform/errors.ts';
import { configurationOf } from './configuration.ts';
import { chooseDatabase, filePath, PASSWORD_ON_COMMAND_LINE } from './database-option.ts';
import { readPassphraseFile, readSecretFile, type SlotAccess } from './offline-keys.ts';
import type { VaultLocation } from './restore-target.ts';

/** The flags of `leasehold restore`; null for a flag that is not given. */
export interface RestoreFlags {
  readonly 'data-dir': string | null;
  readonly database: string | null;
  readonly 'database-file': string | null;
  readonly 'root-key-file': string | null;
  readonly 'slot-passphrase-file': string | null;
  readonly 'identity-file': string | null;
  readonly 'passphrase-file': string | null;
  readonly 'verifier-key': string | null;
  readonly 'accept-damage': boolean;
}

/** Relative paths begin at INIT_CWD of the environment. `warn` receives lines for the operator. @throws UsageError */
export function toRestoreRequest(
  backup: string,
  flags: RestoreFlags,
  environment: Environment,
  warn: (line: string) => void,
): RestoreRequest {
  const path = (text: string | null | undefined): string | null => filePath(text ?? null, environment);
  const database = chooseDatabase({
    flag: flags.database ?? undefined,
    file: path(flags['database-file']),
    environment,
  });
  if (database?.showsPassword === true) warn(PASSWORD_ON_COMMAND_LINE);
  // WHY the flag is needed with a database: the directory in the environment may belong to a server, with its agents'
  // keys.
  const dataDir = path(flags['data-dir'] ?? (database === null ? environment['LEASEHOLD_DATA_DIR'] : null));
  if (database === null && dataDir === null) throw new UsageError('give --data-dir DIR, or --database URL');
  return {
    file: path(backup) ?? '',
    opener: readOpener(path(flags['identity-file']), path(flags['passphrase-file']), warn),
    to: database === null ? { kind: 'directory', dir: dataDir ?? '' } : { kind: 'database', address: database.address },
    dataDir,
    configuration: configurationOf(dataDir, path(flags['root-key-file']), environment),
    slotPassphrase: readPassphraseFile(path(flags['slot-passphrase-file']), warn),
    verifierKeys: flags['verifier-key'] === null ? null : parseVerifierKeys(flags['verifier-key']),
    acceptsDamage: flags['accept-damage'],
  };
}

/**
 * Parses one or more keys: an operator may have kept several, because each restore of the vault adds one. @throws
 * UsageError
 */
function parseVerifierKeys(text: string): string[] {
  const verifiers = text.trim().split(/\s+/).map(parseVerifierKey);
  return verifiers.map((verifier) => {
    if (verifier !== null) return verifierKey(verifier);
    throw new UsageError(
      '--verifier-key: must be the line that leasehold audit checkpoint --public-key prints: leasehold/VAULT+KEYID+KEY',
    );
  });
}

function readOpener(identityFile: string | null, passphraseFile: string | null, warn: (line: string) => void): Opener {
  if (identityFile !== null && passphraseFile === null) {
    return { kind: 'identities', identities: parseIdentities(readSecretFile(identityFile, warn), identityFile) };
  }
  const passphrase = readPassphraseFile(passphraseFile, warn);
  if (passphrase !== null && identityFile === null) return { kind: 'passphrase', passphrase };
  throw new UsageError('Give --identity-file or --passphrase-file: one of them opens the backup.');
}

export interface RestoreRequest extends SlotAccess {
  readonly file: string;
  readonly opener: Opener;
  readonly to: VaultLocation;
  /** The directory of the server, for the keys of agents; null if only a database is restored. */
  readonly dataDir: string | null;
  /** The accepted verifier keys: the vault in the backup must have one of them. Null to ask. */
  readonly verifierKeys: readonly string[] | null;
  /** Whether to restore a backup whose chain, rows or values do not verify. */
  readonly acceptsDamage: boolean;
}

export interface RestoreReporter {
  readonly signal: AbortSignal;
  say(line: string): void;
  progress(what: string, rows: number, of: number): void;
  /** The answer to a question on the terminal; null without a terminal. */
  ask(question: string): Promise<string | null>;
}
