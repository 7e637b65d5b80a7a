/** Tasks for an operator: pending approvals, and the server's findings in the vault. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { AttentionItem, ListedApproval } from '../../../../src/client/types.ts';
import { Badge, credentialHref, Time } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';
import { intervalOf, liveInterval } from '../../session/queries.ts';
import { Section } from './section.tsx';

const APPROVALS = 4;
const ATTENTION_INTERVAL_MS = 60_000;
const ATTENTION_ROWS = 8;

const TITLES: Readonly<Record<AttentionItem['kind'], string>> = {
  denied_repeatedly: 'Repeated denials',
  lease_expiring: 'Expires soon',
  credential_unused: 'Never used',
};

export function WaitingApprovals() {
  const approvals = useQuery({
    queryKey: ['now-approvals'],
    queryFn: ({ signal }) => client.approvals.list({ status: 'pending', limit: APPROVALS }, { signal }),
    refetchInterval: liveInterval,
  });
  const total = approvals.data?.meta.total;
  return (
    <Section
      title="Pending approvals"
      count={total}
      query={approvals}
      empty={{ isEmpty: total === 0, text: 'No pending approvals.' }}
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
  const items = attention.data ?? [];
  return (
    <Section
      title="Needs attention"
      count={attention.data?.length}
      query={attention}
      empty={{
        isEmpty: attention.data?.length === 0,
        text: 'No repeated denials, no leases that end soon, and no unused credentials.',
      }}
    >
      <AttentionList items={items.slice(0, ATTENTION_ROWS)} />
      {items.length > ATTENTION_ROWS && (
        <details>
          <summary>{`${items.length - ATTENTION_ROWS} more`}</summary>
          <AttentionList items={items.slice(ATTENTION_ROWS)} />
        </details>
      )}
    </Section>
  );
}

/** The page and the text of the link. */
function attentionLink({ kind, subject }: AttentionItem): { readonly href: string; readonly text: string } {
  if (kind !== 'denied_repeatedly') {
    return { href: credentialHref(subject), text: 'Show the credential' };
  }
  const name = encodeURIComponent(subject.slice(subject.indexOf(':') + 1));
  return { href: `/log?result=denied&agent=${name}`, text: 'Show the denials' };
}

function AttentionList({ items }: { readonly items: readonly AttentionItem[] }) {
  return (
    <ul className="now-list">
      {items.map((item) => {
        const { href, text } = attentionLink(item);
        return (
          <li key={`${item.kind} ${item.subject} ${item.text}`}>
            <Badge text={TITLES[item.kind]} tone={item.kind === 'denied_repeatedly' ? 'danger' : 'warning'} />
            <span className="now-what">
              <strong>{item.subject}</strong>
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
