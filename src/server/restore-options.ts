/** The options of `leasehold restore`: flag over environment. Never prints a URL, because it may contain a password. */
import { resolve } from 'node:path';
import type { Opener } from '../backup/encryption.ts';
import { parseIdentities } from '../backup/keys.ts';
import { parseVerifierKey, verifierKey } from '../crypto/signed-note.ts';
import { UsageError } from '../platform/errors.ts';
import { CALLED_AS } from './command-lines.ts';
import { readConfiguration } from './configuration.ts';
import { chooseDatabase, PASSWORD_ON_COMMAND_LINE } from './database-option.ts';
import { type Environment, filePath, parseFlags, rejectFlagsKeptByNpm } from './flags.ts';
import { readPassphraseFile, readSecretFile } from './offline-keys.ts';
import type { RestoreRequest } from './restore-request.ts';

export const RESTORE_HELP = `Restores a backup into an empty data directory or database. The file is read completely before anything is created;
chain, rows, state and a sample of values are verified before anything is published. It needs the vault's root key,
which is not in the backup. An older state is a roll-back: a node that has seen a later one refuses to start on it.

Usage: ${CALLED_AS.restore} FILE --data-dir DIR --verifier-key KEY [flags]
       ${CALLED_AS.restore} FILE --database-file FILE --root-key-file FILE --verifier-key KEY [flags]

  --data-dir DIR          a data directory without a database or agents' keys; with a database, for the keys
  --database URL          an empty PostgreSQL database: postgres://… (also LEASEHOLD_DATABASE_URL)
  --database-file FILE    a file with that URL, which keeps its password off the command line
  --root-key-file FILE    the vault's root key (default DIR/root.key)
  --slot-passphrase-file FILE  the passphrase of a key slot, to open the vault without the root key
  --identity-file FILE    the age identities that open a backup encrypted to recipients
  --passphrase-file FILE  the passphrase of a backup encrypted with one
  --verifier-key KEY      the vault's verifier key that you kept, as leasehold audit checkpoint --public-key prints it;
                          several are separated by line breaks. Without it the command shows the key and asks
  --accept-damage         restore a backup whose chain, rows or values do not verify, as it is
  --help                  show this help
`;

const OPTIONS = {
  'data-dir': { type: 'string' },
  database: { type: 'string' },
  'database-file': { type: 'string' },
  'root-key-file': { type: 'string' },
  'slot-passphrase-file': { type: 'string' },
  'identity-file': { type: 'string' },
  'passphrase-file': { type: 'string' },
  'verifier-key': { type: 'string' },
  'accept-damage': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

export interface ParsedRestore {
  readonly request: RestoreRequest;
  readonly warnings: readonly string[];
}

/** Null for `--help`. @throws UsageError */
export function readRestoreRequest(args: readonly string[], environment: Environment): ParsedRestore | null {
  const [first] = args;
  const hasFile = first !== undefined && !first.startsWith('-');
  const given = parseFlags(hasFile ? args.slice(1) : args, OPTIONS, CALLED_AS.restore);
  if (given.help === true) return null;
  rejectFlagsKeptByNpm(Object.keys(OPTIONS), environment, 'npm run restore');
  if (!hasFile) throw new UsageError(`Give the backup first: ${CALLED_AS.restore} FILE …`);
  const file = (name: Exclude<keyof typeof OPTIONS, 'accept-damage' | 'verifier-key' | 'help'>): string | null =>
    filePath(given[name], environment);
  const databaseFile = file('database-file') ?? filePath(environment['LEASEHOLD_DATABASE_FILE'], environment);
  const database = chooseDatabase({ flag: given.database, file: databaseFile, environment });
  const givenDir = file('data-dir');
  // WHY not that of the environment with a database: a service may run on it, with the keys of its agents.
  const dataDir = givenDir ?? (database === null ? filePath(environment['LEASEHOLD_DATA_DIR'], environment) : null);
  if (database === null && dataDir === null) throw new UsageError('Give --data-dir DIR, or --database URL.');
  const warnings = database?.showsPassword === true ? [PASSWORD_ON_COMMAND_LINE] : [];
  const warn = (line: string) => void warnings.push(line);
  const rootKeyFile = file('root-key-file');
  const configuration = readConfiguration(
    [
      ...(dataDir === null ? [] : ['--data-dir', dataDir]),
      ...(rootKeyFile === null ? [] : ['--root-key-file', rootKeyFile]),
    ],
    environment,
  );
  if (configuration === null) return null;
  return {
    request: {
      file: resolve(environment['INIT_CWD'] ?? process.cwd(), first),
      opener: readOpener(file('identity-file'), file('passphrase-file'), warn),
      to:
        database === null ? { kind: 'directory', dir: dataDir ?? '' } : { kind: 'database', address: database.address },
      dataDir,
      configuration,
      slotPassphrase: readPassphraseFile(file('slot-passphrase-file'), warn),
      verifierKeys: given['verifier-key'] === undefined ? null : parseVerifierKeys(given['verifier-key']),
      acceptsDamage: given['accept-damage'] === true,
    },
    warnings,
  };
}

/** An operator may have kept several: each restore of the vault adds one. @throws UsageError */
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
