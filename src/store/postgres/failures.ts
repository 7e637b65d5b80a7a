/** What errors of the driver and of PostgreSQL mean for the port. SOURCE: postgresql.org/docs/current/errcodes-appendix.html. */
import postgres from 'postgres';
import { StoreFailure } from '../port.ts';

/** Classes whose messages are the server's own words about itself, and hold nothing that was sent. */
const ABOUT_THE_SERVER = new Set(['08', '25', '28', '3D', '40', '42', '53', '55', '57', '58', 'XX']);

/** What PostgreSQL says of what it refused, for the operator. */
function describe(error: postgres.PostgresError): string {
  const shown = ABOUT_THE_SERVER.has(error.code.slice(0, 2)) ? error.message : (error.constraint_name ?? 'refused');
  return `PostgreSQL: ${shown} (${error.code})`;
}

/** Codes that the driver and the operating system give to a connection that failed. */
function isConnectionError(error: unknown): error is Error & { code: string } {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false;
  return /^(CONNECT|ECONN|ENET|EHOST|ETIMEDOUT|ENOTFOUND|EAI_|EPIPE|ENOENT|EACCES|SASL_|ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_|SELF_)/.test(
    error.code,
  );
}

/**
 * A failure of the store for what the driver threw; what is neither PostgreSQL's nor the connection's is a bug and passes.
 * What the server itself refused did not happen; where the connection was lost in a commit, nobody knows.
 */
export function toFailure(error: unknown, isCommitting = false): unknown {
  if (error instanceof postgres.PostgresError)
    return new StoreFailure('unavailable', describe(error), { cause: error });
  if (isConnectionError(error)) {
    const what = isCommitting ? 'the connection was lost during a commit' : 'the connection failed';
    return new StoreFailure(isCommitting ? 'unknown' : 'unavailable', `PostgreSQL: ${what} (${error.code})`, {
      cause: error,
    });
  }
  return error;
}

/** The SQLSTATE of what PostgreSQL refused, or null. */
export function sqlStateOf(error: unknown): string | null {
  const cause = error instanceof StoreFailure ? error.cause : error;
  return cause instanceof postgres.PostgresError ? cause.code : null;
}
