/** What errors of the driver and of PostgreSQL mean for the port. SOURCE: postgresql.org/docs/current/errcodes-appendix.html. */
import postgres from 'postgres';
import { StoreError } from '../store.ts';

/** Classes whose messages are the server's own words about itself, and hold nothing that was sent. */
const SAFE_SQLSTATE_CLASSES = new Set(['08', '25', '28', '3D', '40', '42', '53', '55', '57', '58', 'XX']);

/** What PostgreSQL says of what it refused, for the operator. */
function describe(error: postgres.PostgresError): string {
  const shown = SAFE_SQLSTATE_CLASSES.has(error.code.slice(0, 2))
    ? error.message
    : (error.constraint_name ?? 'refused');
  return `PostgreSQL: ${shown} (${error.code})`;
}

/** Codes that the driver and the operating system give to a connection that failed. */
function isConnectionError(error: unknown): error is Error & { code: string } {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false;
  // What Node says of arguments that are none is a bug.
  return !error.code.startsWith('ERR_INVALID');
}

/**
 * A failure of the store for what the driver threw; what is neither PostgreSQL's nor the connection's is a bug and passes.
 * What the server itself refused did not happen; where the connection was lost in a commit, nobody knows.
 */
export function toStoreError(error: unknown, isCommitting = false): unknown {
  if (error instanceof postgres.PostgresError) return new StoreError('unavailable', describe(error), { cause: error });
  const code = isConnectionError(error) ? ` (${error.code})` : '';
  // Whatever it was, the server may have heard it.
  if (isCommitting) return new StoreError('unknown', `PostgreSQL: lost during a commit${code}`, { cause: error });
  if (code === '') return error;
  return new StoreError('unavailable', `PostgreSQL: the connection failed${code}`, { cause: error });
}

/** The SQLSTATE of what PostgreSQL refused, or null. */
export function sqlStateOf(error: unknown): string | null {
  const cause = error instanceof StoreError ? error.cause : error;
  return cause instanceof postgres.PostgresError ? cause.code : null;
}
