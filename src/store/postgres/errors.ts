/**
 * Converts errors of the driver and of PostgreSQL to a `StoreError`. SOURCE:
 * postgresql.org/docs/current/errcodes-appendix.html.
 */
import postgres from 'postgres';
import { StoreError } from '../errors.ts';

/** Classes whose messages never quote data of the client. */
const SAFE_SQLSTATE_CLASSES = new Set(['08', '25', '28', '3D', '40', '42', '53', '55', '57', '58', 'XX']);

function describe(error: postgres.PostgresError): string {
  const shown = SAFE_SQLSTATE_CLASSES.has(error.code.slice(0, 2))
    ? error.message
    : (error.constraint_name ?? 'refused');
  return `PostgreSQL: ${shown} (${error.code})`;
}

function isConnectionError(error: unknown): error is Error & { code: string } {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false;
  // An invalid argument is a bug.
  return !error.code.startsWith('ERR_INVALID');
}

/**
 * Converts an error of PostgreSQL or of the connection to a `StoreError`. Returns any other error, which is a bug,
 * unchanged. A statement that the server rejected had no effect; the outcome of a commit is unknown if the connection
 * was lost.
 */
export function toStoreError(error: unknown, isCommitting = false): unknown {
  if (error instanceof postgres.PostgresError) return new StoreError('unavailable', describe(error), { cause: error });
  const code = isConnectionError(error) ? ` (${error.code})` : '';
  // The server may have received the commit.
  if (isCommitting) return new StoreError('unknown', `PostgreSQL: lost during a commit${code}`, { cause: error });
  if (code === '') return error;
  return new StoreError('unavailable', `PostgreSQL: the connection failed${code}`, { cause: error });
}

export function sqlStateOf(error: unknown): string | null {
  const cause = error instanceof StoreError ? error.cause : error;
  return cause instanceof postgres.PostgresError ? cause.code : null;
}
