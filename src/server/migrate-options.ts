/** What `npm run migrate` was called with: flag over environment. A URL may hold a password, so that it is never repeated. */

import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { UsageError } from '../platform/errors.ts';
import { type PostgresAddress, parseAddress } from '../store/postgres/address.ts';
import { chooseDatabase } from './database-option.ts';
import { CALLED_AS } from './errors.ts';
import { rootKeyBeside, type VaultLocation } from './locations.ts';
import type { Move } from './migrate.ts';

export const MOVE_HELP = `Moves a vault from the embedded database into a PostgreSQL, or back. The service, or every node, must be stopped. The source is
not touched; the chain is verified before and after. Interrupted, it is run again as it was, and goes on.

Usage: ${CALLED_AS.migrate} --from DIR|URL --to DIR|URL [flags]

  --from DIR|URL         a data directory, or postgres://…: where the vault is
  --to DIR|URL           where it goes: a new directory or an empty database
  --database-file FILE   a file that holds the URL; stands for --from or --to, as LEASEHOLD_DATABASE_URL does
  --root-key-file FILE   the vault's root key (default DIR/root.key)
  --accept-broken-chain  carry over a log whose chain is broken, as it is
  --help                 show this
`;

const OPTIONS = {
  from: { type: 'string' },
  to: { type: 'string' },
  'database-file': { type: 'string' },
  'root-key-file': { type: 'string' },
  'accept-broken-chain': { type: 'boolean' },
  help: { type: 'boolean' },
} as const;
const SHOWS_PASSWORD =
  "The database's password stands on the command line, for everybody on this machine: use --database-file.";

type Environment = Readonly<Record<string, string | undefined>>;

export interface ParsedOptions {
  readonly order: Move;
  readonly warnings: readonly string[];
}

/** Null where `--help` was asked for. @throws UsageError */
export function readMigrationRequest(args: readonly string[], environment: Environment): ParsedOptions | null {
  const given = parse(args);
  if (given.help === true) return null;
  // Without `--` npm keeps a flag for itself.
  const kept = Object.keys(OPTIONS).find(
    (name) => environment[`npm_config_${name.replaceAll('-', '_')}`] !== undefined,
  );
  if (kept !== undefined) {
    throw new UsageError(
      `npm kept --${kept} for itself: put -- before the flags, as in npm run migrate -- --${kept} …`,
    );
  }
  const base = environment['INIT_CWD'] ?? process.cwd();
  const file = (name: 'database-file' | 'root-key-file', variable: string): string | null => {
    const path = given[name] ?? environment[variable];
    return path === undefined ? null : resolve(base, path);
  };
  if (given.from !== undefined && given.to !== undefined && given['database-file'] !== undefined) {
    throw new UsageError('--database-file stands for --from or --to: leave one of the three out.');
  }
  const named = (): VaultLocation => {
    const url = environment['LEASEHOLD_DATABASE_URL'] ?? environment['LEASEHOLD_DATABASE'];
    const databaseFile = file('database-file', 'LEASEHOLD_DATABASE_FILE');
    const choice = chooseDatabase({ flag: undefined, environment: url, file: databaseFile }, true);
    if (choice === null) throw new UsageError(`Give --from and --to: ${CALLED_AS.migrate} --help tells how.`);
    return { kind: 'database', address: choice.address };
  };
  if (given.from === undefined && given.to === undefined) {
    throw new UsageError(`Give --from and --to: ${CALLED_AS.migrate} --help tells how.`);
  }
  const from = given.from === undefined ? named() : toPlace('--from', given.from, base);
  const to = given.to === undefined ? named() : toPlace('--to', given.to, base);
  assertApart(from, to);
  const rootKeyFile = file('root-key-file', 'LEASEHOLD_ROOT_KEY_FILE') ?? rootKeyBeside(from, to);
  if (rootKeyFile === null) throw new UsageError('Give --root-key-file: the root key is in no database.');
  const shown = [given.from, given.to].some((text) => text !== undefined && isUrl(text) && hasPassword(text));
  return {
    order: { from, to, rootKeyFile, acceptsBrokenChain: given['accept-broken-chain'] === true },
    warnings: shown ? [SHOWS_PASSWORD] : [],
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, strict: true }).values;
  } catch (error) {
    // Its first sentence names the flag; what follows would repeat values.
    const [first = ''] = (error instanceof Error ? error.message : '').split(/\.?\s*\n|\. /);
    throw new UsageError(`${first}. ${CALLED_AS.migrate} --help lists the flags.`);
  }
}

const isUrl = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
const hasPassword = (url: string): boolean => parseAddress(url).password !== null;

function toPlace(flag: string, text: string, base: string): VaultLocation {
  if (text === '') throw new UsageError(`${flag} is empty: give a directory or postgres://….`);
  if (!isUrl(text)) return { kind: 'directory', dir: resolve(base, text) };
  try {
    return { kind: 'database', address: parseAddress(text) };
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${flag}: ${error.message}.`);
    throw error;
  }
}

/** @throws UsageError where both are the same, as far as can be told */
function assertApart(from: VaultLocation, to: VaultLocation): void {
  const isSame =
    from.kind === 'directory'
      ? to.kind === 'directory' && real(from.dir) === real(to.dir)
      : to.kind === 'database' && isDeepStrictEqual(whereOf(from.address), whereOf(to.address));
  if (isSame) throw new UsageError('--from and --to are the same.');
}

const whereOf = ({ hosts, database }: PostgresAddress) => ({ hosts, database });

function real(dir: string): string {
  try {
    return realpathSync(dir);
  } catch {
    return dir;
  }
}
