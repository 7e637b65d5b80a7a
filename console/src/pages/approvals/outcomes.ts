/** The outcome of a request. Each outcome has its own word and sentence, because they mean different things. */
import type { ListedApproval } from '../../../../src/client/types.ts';
import type { Tone } from '../../components/texts.tsx';

interface Outcome {
  readonly label: string;
  readonly tone: Tone;
  readonly meaning: string;
}

export const OUTCOMES: Readonly<Record<ListedApproval['status'], Outcome>> = {
  pending: { label: 'Pending', tone: 'warning', meaning: 'Nothing was sent. Operators have not answered yet.' },
  approved: { label: 'Approved', tone: 'good', meaning: 'Operators approved it.' },
  denied: { label: 'Denied', tone: 'danger', meaning: 'An operator denied it. Nothing was sent.' },
  timed_out: {
    label: 'Timed out',
    tone: 'neutral',
    meaning: 'Too few operators answered in time. Nothing was sent. This is not a denial.',
  },
  withdrawn: {
    label: 'Withdrawn',
    tone: 'neutral',
    meaning: 'It was withdrawn, or a policy, a target or the agent’s key changed.',
  },
};
/** The fifth outcome has no approval: the request is rejected without waiting, and only the audit log records it. */
export const NO_APPROVER =
  'If fewer operators can answer than must approve, the request is rejected at once as “no approver”.';

/** A title such as `POST https://api.example.com/v1/charges`, or the retrieval of a value. */
export function titleOf({ action, method, host, target_path, path }: ListedApproval): string {
  return action === 'use' && method !== null
    ? `${method} ${host ?? ''}${target_path ?? ''}`
    : `See the value of ${path}`;
}

export const isLiveGrant = ({ status, uses_left, grant_ends_at }: ListedApproval, now: number): boolean =>
  status === 'approved' && uses_left !== 0 && (grant_ends_at === null || Date.parse(grant_ends_at) > now);

export const nameOf = (operator: string): string => operator.replace(/^operator:/, '');
