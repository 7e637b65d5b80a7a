/** The pending approvals, newest first, as cards. */
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react';
import { groupApprovals } from '../../../../src/client/approval-groups.ts';
import { FilterBar, useFilters } from '../../components/filter-bar.tsx';
import { announceQuietly } from '../../components/live-region.tsx';
import { EmptyState, ErrorPanel, Loading } from '../../components/states.tsx';
import { countText } from '../../components/words.ts';
import { client, useRole } from '../../session/console-client.ts';
import { WAITING_COUNT_KEY } from '../../shell/waiting-count.tsx';
import { ApprovalCard } from './approval-card.tsx';
import { useCards } from './use-cards.ts';

const INTERVAL_MS = 1000;
/** The number of newest requests that are read each second. */
const MAX_READ = 200;
const CARDS_SHOWN = 20;
const FIELDS = [{ name: 'agent', label: 'Agent' }];
/** The element that takes the focus of a card. */
const TITLES = 'article h2 a';

const POLICY_COMMAND =
  "leasehold policy put payments --principal 'agent:bot' --resource 'stripe/*' --action use --approval use";

export function Inbox() {
  const [shownCards, setShownCards] = useState(CARDS_SHOWN);
  const list = useRef<HTMLDivElement>(null);
  const filter: { readonly agent?: string } = useFilters(FIELDS);
  const isFiltered = filter.agent !== undefined;
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['approvals', 'waiting', filter.agent ?? null],
    queryFn: ({ signal }) => client.approvals.list({ ...filter, status: 'pending', limit: MAX_READ }, { signal }),
    // In a hidden window, the count in the title is sufficient.
    refetchInterval: INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
  const mayAnswer = useRole('approver');
  const total = data?.meta.total ?? 0;
  const groups = useMemo(() => groupApprovals(data?.data ?? []).toReversed(), [data]);
  const cards = useCards(useMemo(() => groups.slice(0, shownCards), [groups, shownCards]));
  useAnnouncedTotal(isPending ? null : total);
  const queries = useQueryClient();
  useEffect(() => {
    if (data !== undefined && !isFiltered) queries.setQueryData(WAITING_COUNT_KEY, total);
  }, [data, isFiltered, queries, total]);
  const focusNext = (card: HTMLElement | null): void => {
    const titles = [...(list.current?.querySelectorAll<HTMLElement>(TITLES) ?? [])];
    const index = titles.findIndex((title) => card?.contains(title));
    (titles[index + 1] ?? titles[index - 1] ?? document.querySelector<HTMLElement>('h1'))?.focus();
  };
  if (error !== null && data === undefined) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (isPending) return <Loading what="the pending approvals" />;
  if (total === 0 && !isFiltered) {
    return (
      <EmptyState title="No pending approvals" command={POLICY_COMMAND}>
        A policy can require that an operator approves each use of a credential. The requests then appear here. This
        command creates such a policy.
      </EmptyState>
    );
  }
  return (
    <>
      {error !== null && <ErrorPanel error={error} onRetry={() => void refetch()} />}
      {/* One agent with many requests must not hide those of other agents. */}
      <FilterBar fields={FIELDS} label="Filter the pending approvals" />
      <p className="count">
        {countText(total, 'pending request')}, newest first. Move to a card with Tab or the arrows
        {mayAnswer ? (
          <>
            ; <kbd>a</kbd> approves it, <kbd>d</kbd> denies it.
          </>
        ) : (
          '.'
        )}
      </p>
      {/* The arrows are a second way to reach cards that Tab also reaches. */}
      <div ref={list} role="feed" aria-label="Pending requests" className="approvals" onKeyDown={moveBetweenCards}>
        {cards.map((requests) => (
          <ApprovalCard key={requests[0].listed.approval_id} requests={requests} onAnswered={focusNext} />
        ))}
      </div>
      {groups.length > shownCards && (
        <button type="button" onClick={() => setShownCards((count) => count + CARDS_SHOWN)}>
          Show more
        </button>
      )}
      {total > MAX_READ && (
        <p className="hint">
          The newest {MAX_READ} are read. Earlier ones appear as these are answered. Use a filter to see them now.
        </p>
      )}
    </>
  );
}

function moveBetweenCards(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
  const { target, currentTarget, ctrlKey, metaKey } = event;
  if (step === undefined || ctrlKey || metaKey || !(target instanceof HTMLElement) || !target.matches(TITLES)) return;
  const cards = [...currentTarget.querySelectorAll<HTMLElement>(TITLES)];
  cards[cards.indexOf(target) + step]?.focus();
  event.preventDefault();
}

function useAnnouncedTotal(total: number | null): void {
  const before = useRef<number | null>(null);
  useEffect(() => {
    if (total !== null && before.current !== null && total > before.current)
      announceQuietly(`${total} pending requests.`);
    before.current = total;
  }, [total]);
}
