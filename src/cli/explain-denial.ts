/** Adds a hint to a denial: how to get access. Also contains the lease clients of `run` and `inject`. */
import { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import { quoteWord } from '../platform/shell-command.ts';
import type { LeaseClient } from '../run/leases.ts';
import type { UseLeaseClient } from '../run/use-leases.ts';
import { announceApproval } from './approval-notice.ts';
import type { Invocation } from './command.ts';
import { mayBeAdministrator } from './settings/settings.ts';

/** An error of the server with a hint. Its message begins with the path or name that it concerns. */
export class ErrorWithHint extends LeaseholdError {
  readonly hint: string | null;

  constructor(error: LeaseholdError, hint: string | null, subject = '') {
    const { code, message, status, requestId, retryAfterSeconds, approvalId } = error;
    super(code, subject + message, {
      requestId,
      retryAfterSeconds,
      approvalId,
      ...(status === null ? {} : { status }),
    });
    this.hint = hint;
  }
}

interface Attempt {
  readonly action: string;
  readonly path: string;
  readonly request?: { readonly method: string; readonly url: string } | null;
}

/**
 * Awaits `work`, and announces an approval that it waits for. If access is denied, the hint names the command that
 * explains it. @throws ErrorWithHint, LeaseholdError
 */
export async function withDenialHint<T>(
  invocation: Invocation,
  { action, path, request = null }: Attempt,
  work: Promise<T>,
): Promise<T> {
  const { settings } = invocation;
  const endWatch = announceApproval(invocation, { action, path });
  try {
    return await work.finally(endWatch);
  } catch (error) {
    const who = settings.identity.value;
    if (!(error instanceof LeaseholdError) || error.code !== 'ACCESS_DENIED') throw error;
    if (who.kind !== 'agent' && who.kind !== 'session') throw error;
    // WHY without the query: targets do not depend on it, and it may be confidential.
    const [url] = request?.url.split('?') ?? [];
    const exactly = request === null ? '' : ` --request ${quoteWord(`${request.method} ${url}`)}`;
    const command = `leasehold policy explain ${who.name} ${action} ${quoteWord(path)}${exactly}`;
    throw new ErrorWithHint(error, `An administrator can see what would grant it: ${command}`);
  }
}

export function leaseClientFor(invocation: Invocation): LeaseClient {
  const vault = (): Leasehold => invocation.connect();
  return {
    retrieve: async (path, options) =>
      withDenialHint(invocation, { action: 'retrieve', path }, vault().credentials.retrieve(path, options)),
    revoke: async (leaseId, options) => vault().leases.revoke(leaseId, options),
  };
}

export function useClientFor(invocation: Invocation): UseLeaseClient {
  const vault = (): Leasehold => invocation.connect();
  const { identity } = invocation.settings;
  return {
    ...leaseClientFor(invocation),
    issueUse: async (path, { ttlSeconds: ttl, signal }) => {
      const issuing = vault().useLeases.issue({ path, ...(ttl === undefined ? {} : { ttl }) }, { signal });
      try {
        return await withDenialHint(invocation, { action: 'use', path }, issuing);
      } catch (error) {
        const isDenied = error instanceof LeaseholdError && error.code === 'ACCESS_DENIED';
        if (!isDenied || !mayBeAdministrator(identity.value)) throw error;
        throw new ErrorWithHint(error, 'A program uses a credential as an agent: --agent NAME');
      }
    },
    baseUrl: (path) => vault().baseURL(path),
    read: async (leaseId, options) => vault().leases.read(leaseId, options),
    renew: async (leaseId, options) => vault().leases.renew(leaseId, options),
  };
}
