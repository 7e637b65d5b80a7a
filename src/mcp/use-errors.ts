/** Adds to the error of a use what would help, for the model and for the operator that it may ask. */
import { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import type { CredentialPath } from '../core/path.ts';
import { ErrorWithAdvice } from './tool.ts';
import { quote } from './untrusted.ts';

interface Use {
  readonly client: Leasehold;
  readonly agent: string;
  readonly path: CredentialPath;
  readonly signal: AbortSignal;
}

const UNKNOWN_OUTCOME =
  'The request may have reached the upstream: before you repeat one that changes something, check whether it took effect.';

/** By the class of the failure. SOURCE: docs/api.md, "Brokered use". */
const FAILURE_ADVICE: ReadonlyMap<string, string> = new Map([
  ['value', 'Nothing was sent: the value must be 4 bytes to 4 KiB, and visible ASCII where it is placed in a header.'],
  ['dns', 'The host of the URL has no address: check its name.'],
  ['refused_address', 'The host has an internal address, which the operator must allow in the credential’s target.'],
  ['connect', 'The host accepted no connection; nothing was sent.'],
  ['tls', 'The host’s certificate is not trusted; nothing was sent. The operator can set ca_pem in the target.'],
  ['timeout', `The host did not respond in time. ${UNKNOWN_OUTCOME}`],
  ['protocol', `The request or the response is not valid HTTP. ${UNKNOWN_OUTCOME}`],
  ['coding', `The host used a content coding that cannot be searched for secrets. ${UNKNOWN_OUTCOME}`],
  ['partial', `The host answered with a part that was not asked for, which is withheld. ${UNKNOWN_OUTCOME}`],
  ['broker', `The vault could not complete the request. ${UNKNOWN_OUTCOME}`],
]);

/** Returns other errors unchanged. Never rejects. */
export async function explainUseError(error: unknown, use: Use): Promise<unknown> {
  if (!(error instanceof LeaseholdError)) return error;
  const advice = await adviceFor(error, use);
  return advice === null ? error : new ErrorWithAdvice(error, advice);
}

async function adviceFor(error: LeaseholdError, use: Use): Promise<string | null> {
  switch (error.code) {
    case 'ACCESS_DENIED':
      return explainDenial(use);
    case 'NOT_FOUND':
      return 'list_credentials shows the paths that this agent may list.';
    case 'UPSTREAM_FAILED':
      // WHY the message: an error has a code and no further field.
      return FAILURE_ADVICE.get(/: (\w+)\.$/.exec(error.message)?.[1] ?? '') ?? UNKNOWN_OUTCOME;
    case 'UNREACHABLE':
    case 'TIMED_OUT':
    case 'INVALID_RESPONSE':
      return UNKNOWN_OUTCOME;
    default:
      return null;
  }
}

/** The vault's message names the part that no target has. Whether a policy denies the use is asked: not recorded. */
async function explainDenial({ client, agent, path, signal }: Use): Promise<string> {
  const operator = `To the operator: leasehold policy explain ${agent} use ${path}`;
  try {
    const { allowed, reason } = await client.policies.simulate({ agent, resource: path, action: 'use' }, { signal });
    return allowed
      ? `The policies allow this agent to use ${path}, but its targets do not allow this request: they list hosts, paths and methods, and an operator sets them. Change the request, or ask for a target. ${operator} shows the decision.`
      : `The policies do not allow this agent to use ${path}: ${quote(reason, 600)}. ${operator} shows what would grant it.`;
  } catch {
    return `${operator} shows what would grant it.`;
  }
}
