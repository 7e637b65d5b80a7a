/** The database option of the service and its tools. Never prints a URL, because it may contain a password. */

import { readFileSync } from 'node:fs';
import { UsageError } from '../platform/errors.ts';
import { type PostgresAddress, parseAddress } from '../store/postgres/address.ts';

export const PASSWORD_ON_COMMAND_LINE =
  'Every user of this machine can read the database password on the command line. Use --database-file.';

export interface DatabaseChoice {
  readonly address: PostgresAddress;
  /** Whether a start may bring the schema up to date. */
  readonly mayMigrate: boolean;
  /** Whether the password is on the command line, which every user of the machine can read. */
  readonly showsPassword: boolean;
  /** The file with the URL, if one was given. */
  readonly file: string | null;
}

interface Given {
  readonly flag: string | undefined;
  readonly environment: string | undefined;
  readonly file: string | null;
}

/** The flag overrides the file, and the file the environment. Null if none is given. @throws UsageError */
export function chooseDatabase({ flag, environment, file }: Given, mayMigrate: boolean): DatabaseChoice | null {
  if (flag !== undefined && file !== null) throw new UsageError('Give --database or --database-file, not both.');
  if (flag !== undefined) {
    const address = parse(flag, '--database');
    return { address, mayMigrate, showsPassword: address.password !== null, file: null };
  }
  if (file !== null) return { address: parse(readUrl(file), file), mayMigrate, showsPassword: false, file };
  if (environment === undefined) return null;
  return { address: parse(environment, 'LEASEHOLD_DATABASE_URL'), mayMigrate, showsPassword: false, file: null };
}

function readUrl(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${error instanceof Error ? error.message : 'unknown error'}.`);
  }
}

/** @throws UsageError that names the source of the URL, and not the URL */
function parse(url: string, where: string): PostgresAddress {
  try {
    return parseAddress(url);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${where}: ${error.message}.`);
    throw error;
  }
}
