/** The options of `npm run migrate`: flag over environment. Never prints a URL, because it may contain a password. */

import { resolve } from 'node:path';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { UsageError } from '../platform/errors.ts';
import { parseAddress } from '../store/postgres/address.ts';
import { CALLED_AS } from './command-lines.ts';
import { readConfiguration } from './configuration.ts';
import { chooseDatabase, PASSWORD_ON_COMMAND_LINE, parseUrl } from './database-option.ts';
import { type Environment, filePath, parseFlags, rejectFlagsKeptByNpm } from './flags.ts';
import type { VaultLocation } from './locations.ts';
import type { MigrationRequest } from './migrate.ts';
import { readPassphraseFile } from './offline-keys.ts';

export const MIGRATE_HELP = `Migrates a vault from the embedded database to PostgreSQL, or back. Stop the service, or every node, first. The source
is not changed; the chain is verified before and after. An interrupted migration leaves nothing: run it again.

Usage: ${CALLED_AS.migrate} --from DIR|URL --to DIR|URL [flags]

  --from DIR|URL         the vault: a data directory, or postgres://…
  --to DIR|URL           the target: a directory without a database, or an empty database
  --database-file FILE   a file with the URL, instead of --from or --to; LEASEHOLD_DATABASE_URL works too
  --root-key-file FILE   the vault's root key (default DIR/root.key); other key slots that need no person open it too
  --slot-passphrase-file FILE  the passphrase of a key slot, to open the vault without the root key
  --accept-broken-chain  copy a log whose chain is broken, as it is
  --help                 show this help
`;

const OPTIONS = {
  from: { type: 'string' },
  to: { type: 'string' },
  'database-file': { type: 'string' },
  'root-key-file': { type: 'string' },
  'slot-passphrase-file': { type: 'string' },
  'accept-broken-chain': { type: 'boolean' },
  help: { type: 'boolean' },
} as const;

export interface ParsedOptions {
  readonly request: MigrationRequest;
  readonly warnings: readonly string[];
}

/** Null for `--help`. @throws UsageError */
export function readMigrationRequest(args: readonly string[], environment: Environment): ParsedOptions | null {
  const given = parseFlags(args, OPTIONS, CALLED_AS.migrate);
  if (given.help === true) return null;
  rejectFlagsKeptByNpm(Object.keys(OPTIONS), environment, 'npm run migrate');
  const base = environment['INIT_CWD'] ?? process.cwd();
  const file = (name: 'database-file' | 'root-key-file' | 'slot-passphrase-file', variable?: string): string | null =>
    filePath(given[name] ?? (variable === undefined ? undefined : environment[variable]), environment);
  const named = [given.from, given.to].filter((text) => text !== undefined);
  if (named.length === 2 && given['database-file'] !== undefined) {
    throw new UsageError('--database-file replaces --from or --to. Give two of the three.');
  }
  if (named.length === 0) throw new UsageError(`Give --from and --to. See ${CALLED_AS.migrate} --help.`);
  const other = (): VaultLocation => {
    const choice = chooseDatabase({
      flag: undefined,
      file: file('database-file', 'LEASEHOLD_DATABASE_FILE'),
      environment,
    });
    if (choice === null) throw new UsageError(`Give --from and --to. See ${CALLED_AS.migrate} --help.`);
    return { kind: 'database', address: choice.address };
  };
  const from = given.from === undefined ? other() : toLocation('--from', given.from, base);
  const to = given.to === undefined ? other() : toLocation('--to', given.to, base);
  const directory = from.kind === 'directory' ? from : to;
  if (directory.kind === 'database' || from.kind === to.kind) {
    throw new UsageError('One of --from and --to must be a data directory, and the other one a PostgreSQL database.');
  }
  // WHY always given: the service makes a default file private, and the source is not changed.
  const rootKeyFile = file('root-key-file', 'LEASEHOLD_ROOT_KEY_FILE') ?? dataDirPaths(directory.dir).rootKeyFile;
  const configuration = readConfiguration(['--data-dir', directory.dir, '--root-key-file', rootKeyFile], environment);
  if (configuration === null) return null;
  const warnings = named.some((text) => isUrl(text) && hasPassword(text)) ? [PASSWORD_ON_COMMAND_LINE] : [];
  return {
    request: {
      from,
      to,
      configuration,
      slotPassphrase: readPassphraseFile(file('slot-passphrase-file'), (line) => warnings.push(line)),
      acceptsBrokenChain: given['accept-broken-chain'] === true,
    },
    warnings,
  };
}

const isUrl = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
const hasPassword = (url: string): boolean => parseAddress(url).password !== null;

function toLocation(flag: string, text: string, base: string): VaultLocation {
  if (!isUrl(text)) return { kind: 'directory', dir: resolve(base, text) };
  return { kind: 'database', address: parseUrl(text, flag) };
}
