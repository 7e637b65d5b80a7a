/** The lease client of `run` and `inject`, and its error messages. */
import { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import type { LeaseClient, Refused } from '../run/leases.ts';
import type { Invocation } from './command.ts';
import { ErrorWithHint, withDenialHint } from './explain-denial.ts';
import { printNotice } from './terminal.ts';

export function leaseClientFor(invocation: Invocation, vault: Leasehold | null): LeaseClient {
  if (vault === null)
    return {
      retrieve: () => Promise.reject(new Error('no credential was requested')),
      revoke: () => Promise.resolve(),
    };
  return {
    retrieve: (path, options) =>
      withDenialHint(invocation, { action: 'retrieve', path }, vault.credentials.retrieve(path, options)),
    revoke: (leaseId, options) => vault.leases.revoke(leaseId, options),
  };
}

/** Prints all errors but the last, which it returns for the caller to throw. */
export function reportRefusals({ terminal }: Invocation, refused: readonly Refused[]): unknown {
  const errors = refused.map(withPath);
  for (const error of errors.slice(0, -1)) {
    const known = error instanceof ErrorWithHint ? error.error : error;
    if (known instanceof LeaseholdError)
      printNotice(terminal, `leasehold: ${known.message.replace(/\.$/, '')} (${known.code}).`);
  }
  return errors.at(-1);
}

function withPath({ wanted: { name, path }, error }: Refused): unknown {
  if (error instanceof ErrorWithHint) return new ErrorWithHint(named(error.error), error.hint);
  return error instanceof LeaseholdError ? named(error) : error;

  function named({ code, message, status, requestId, retryAfterSeconds }: LeaseholdError): LeaseholdError {
    const details = { requestId, retryAfterSeconds, ...(status === null ? {} : { status }) };
    return new LeaseholdError(code, `${name} (${path}): ${message}`, details);
  }
}
