/** What needs a person: requests that wait for an approval, and what the service found while it examined the vault. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { Attention, ListedApproval } from '../../../../src/client/types.ts';
import { Badge } from '../../components/badge.tsx';
import { Time } from '../../components/time.tsx';
import { client } from '../../session/console-client.ts';
import { attentionLink } from './addresses.ts';
import { intervalOf, liveInterval } from './live-interval.ts';
import { Section } from './section.tsx';

const APPROVALS = 4;
const ATTENTION_INTERVAL_MS = 15_000;
const ATTENTION_ROWS = 8;
const NOT_EXAMINED = 'Not everything was examined yet.';

type AttentionItem = Attention['items'][number];

const TITLES: Readonly<Record<AttentionItem['kind'], string>> = {
  lease_expiring: 'Expires soon',
  credential_unused: 'Never used',
  denied_repeatedly: 'Denied again and again',
  policy_grants_nothing: 'Grants nothing',
  agent_never_logged_in: 'Never logged in',
  anchor_late: 'Anchor late',
  checkpoint_late: 'Checkpoint late',
  backup_late: 'Backup late',
};
const URGENT: readonly AttentionItem['kind'][] = ['denied_repeatedly', 'anchor_late', 'checkpoint_late', 'backup_late'];

export function WaitingApprovals() {
  const approvals = useQuery({
    queryKey: ['now-approvals'],
    queryFn: ({ signal }) => client.approvals.list({ status: 'pending', limit: APPROVALS }, { signal }),
    refetchInterval: liveInterval,
  });
  const total = approvals.data?.meta.total;
  return (
    <Section
      title="Waits for approval"
      count={total}
      query={approvals}
      empty={{ isEmpty: total === 0, text: 'No request waits for a person.' }}
      more={{ href: '/approvals', text: 'Open the inbox' }}
    >
      <ul className="now-list">
        {approvals.data?.data.map((approval) => (
          <ApprovalLine key={approval.approval_id} approval={approval} />
        ))}
      </ul>
    </Section>
  );
}

function ApprovalLine({ approval }: { readonly approval: ListedApproval }) {
  const { approval_id, agent_name, action, path, expires_at } = approval;
  return (
    <li>
      <span className="now-what">
        <strong>{agent_name}</strong> asks to {action}{' '}
        <Link href={`/approvals/${encodeURIComponent(approval_id)}`}>{path}</Link>
      </span>
      <span>
        until <Time at={expires_at} />
      </span>
    </li>
  );
}

export function NeedsAttention() {
  const attention = useQuery({
    queryKey: ['now-attention'],
    queryFn: ({ signal }) => client.overview.attention({ signal }),
    refetchInterval: intervalOf(ATTENTION_INTERVAL_MS),
  });
  const items = attention.data?.items ?? [];
  const shown = [...items].sort((a, b) => Number(URGENT.includes(b.kind)) - Number(URGENT.includes(a.kind)));
  return (
    <Section
      title="Needs attention"
      count={attention.data?.items.length}
      query={attention}
      empty={{
        isEmpty: attention.data?.items.length === 0,
        text: attention.data?.complete === false ? NOT_EXAMINED : 'Nothing needs attention.',
      }}
    >
      <AttentionList items={shown.slice(0, ATTENTION_ROWS)} />
      {shown.length > ATTENTION_ROWS && (
        <details>
          <summary>{`${shown.length - ATTENTION_ROWS} more`}</summary>
          <AttentionList items={shown.slice(ATTENTION_ROWS)} />
        </details>
      )}
      {attention.data?.complete === false && <p className="hint">{NOT_EXAMINED}</p>}
    </Section>
  );
}

function AttentionList({ items }: { readonly items: readonly AttentionItem[] }) {
  return (
    <ul className="now-list">
      {items.map((item) => {
        const { href, text } = attentionLink(item);
        return (
          <li key={`${item.kind} ${item.subject} ${item.text}`}>
            <Badge text={TITLES[item.kind]} tone={URGENT.includes(item.kind) ? 'danger' : 'warning'} />
            <span className="now-what">
              <strong>{item.subject === '*' ? 'The vault' : item.subject}</strong>
              {item.count !== null && item.count > 1 && ` (${item.count.toLocaleString('en')})`}
              <span className="now-reason">{item.text}</span>
            </span>
            <Link href={href} aria-label={`${text}: ${item.subject}`}>
              {text}
            </Link>
          </li>
        );
      })}
    </ul>
  );
}
