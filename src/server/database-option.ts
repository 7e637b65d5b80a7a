/** The database option of the server and its tools. Never prints a URL, because it may contain a password. */

import { resolve } from 'node:path';
import type { Environment } from '../flags/flag.ts';
import { UsageError } from '../platform/errors.ts';
import { readSecretBytes } from '../platform/private-files.ts';
import { DEFAULT_APPLICATION_NAME, type PostgresAddress, parseAddress } from '../store/postgres/database-url.ts';

export const PASSWORD_ON_COMMAND_LINE =
  'Every user of this machine can read the database password on the command line. Use --database-file.';

const VARIABLE = 'LEASEHOLD_DATABASE_URL';

export interface DatabaseChoice {
  readonly address: PostgresAddress;
  /** Whether the password is on the command line, which every user of the machine can read. */
  readonly showsPassword: boolean;
  /** The file with the URL, if one was given. */
  readonly file: string | null;
}

interface Given {
  readonly flag: string | undefined;
  readonly file: string | null;
  readonly environment: Environment;
}

/**
 * The flag takes precedence over the file, and the file over LEASEHOLD_DATABASE_URL. Null if none is given. @throws
 * UsageError
 */
export function chooseDatabase({ flag, file, environment }: Given): DatabaseChoice | null {
  if (flag !== undefined && file !== null) throw new UsageError('Give --database or --database-file, not both.');
  if (flag !== undefined) {
    const address = parseUrl(flag, '--database');
    return { address, showsPassword: address.password !== null, file: null };
  }
  if (file !== null) return { address: parseUrl(readUrl(file), file), showsPassword: false, file };
  const url = environment[VARIABLE];
  return url === undefined ? null : { address: parseUrl(url, VARIABLE), showsPassword: false, file: null };
}

function readUrl(file: string): string {
  try {
    return readSecretBytes(file).toString('utf8').trim();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : `${file} cannot be read.`);
  }
}

/** @throws UsageError, which names the source of the URL and not the URL */
function parseUrl(url: string, where: string): PostgresAddress {
  try {
    return parseAddress(url);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${where}: ${error.message}.`);
    throw error;
  }
}

/** The database, with the connection name by which other nodes recognise this one, unless its URL sets another name. */
export function withConnectionName(database: DatabaseChoice | null, name: string): DatabaseChoice | null {
  if (database === null || database.address.applicationName !== DEFAULT_APPLICATION_NAME) return database;
  return { ...database, address: { ...database.address, applicationName: name } };
}

/** The absolute path of a file in a flag. npm changes the working directory. */
export function filePath(path: string | null, environment: Environment): string | null {
  return path === null ? null : resolve(environment['INIT_CWD'] ?? process.cwd(), path);
}
