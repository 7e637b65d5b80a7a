/** The metrics of approvals. */
import { Tally } from '../../core/measures.ts';
import { gauge, histogram, type Metric } from './metric.ts';

/** Without a webhook. */
const NONE = new Tally(['sent', 'failed', 'dropped']);

export const APPROVAL_METRICS: readonly Metric[] = [
  gauge('leasehold_approvals_pending', 'Requests that this node holds until they are approved.', ({ vault }) => {
    return vault.approvals.heldCount;
  }),
  {
    kind: 'counter',
    name: 'leasehold_approvals_total',
    help: 'Outcomes of requests for approval that this node recorded; no_approver per request.',
    labels: ['outcome'],
    read: ({ approvalEvents, requests }) => [
      ...approvalEvents.measures.outcomes.entries().map(([outcome, count]) => [{ outcome }, count] as const),
      [{ outcome: 'no_approver' }, requests.rejections.get('NO_APPROVER')],
    ],
  },
  histogram(
    'leasehold_approval_wait_seconds',
    'Time from a request for approval to its outcome.',
    ({ approvalEvents }) => approvalEvents.measures.waitSeconds,
  ),
  {
    kind: 'counter',
    name: 'leasehold_approval_webhooks_total',
    help: 'Messages to the webhook for approvals: sent, dropped, and attempts that failed.',
    labels: ['result'],
    read: ({ webhookResults }) => (webhookResults() ?? NONE).entries().map(([result, count]) => [{ result }, count]),
  },
];
