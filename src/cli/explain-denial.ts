/** Adds to a denial how to get access; the lease client of `run` and `inject`, whose denials name the variable too. */
import { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import { quoteWord } from '../platform/shell-quoting.ts';
import type { LeaseClient, Refused } from '../run/leases.ts';
import type { Invocation } from './command.ts';
import { printNotice } from './terminal.ts';

/** An error of the service with a hint. */
export class ErrorWithHint extends Error {
  readonly error: LeaseholdError;
  readonly hint: string;

  constructor(error: LeaseholdError, hint: string) {
    super(error.message);
    this.error = error;
    this.hint = hint;
  }
}

/**
 * Awaits `work`. If access is denied, explains why and how an administrator can grant it. @throws ErrorWithHint,
 * LeaseholdError
 */
export async function withDenialHint<T>(
  { settings, connect, signal }: Invocation,
  { action, path }: { readonly action: string; readonly path: string },
  work: Promise<T>,
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const who = settings.identity.value;
    if (!(error instanceof LeaseholdError) || error.code !== 'ACCESS_DENIED') throw error;
    if (who.kind !== 'agent' && who.kind !== 'session') throw error;
    const vault = connect();
    const simulated = await vault.policies
      .simulate({ agent: who.name, resource: path, action }, { signal })
      .catch(() => null);
    // The rest of the reason is in the error message already.
    const [, near = ''] = /; (the nearest pattern is .*)\.$/.exec(simulated?.reason ?? '') ?? [];
    const why = near === '' ? '' : `${near.charAt(0).toUpperCase()}${near.slice(1)}. `;
    throw new ErrorWithHint(
      error,
      `${why}An administrator can see what would grant it: leasehold policy explain ${who.name} ${action} ${quoteWord(path)}`,
    );
  }
}

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
