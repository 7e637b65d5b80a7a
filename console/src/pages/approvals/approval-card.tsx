/**
 * Requests that share one answer. Before the answer the card shows each exact request, the agent, and the access that
 * an approval allows.
 */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type KeyboardEvent, type MouseEvent, useEffect, useId, useRef, useState } from 'react';
import { Link } from 'wouter';
import { isReadable } from '../../../../src/client/approval-groups.ts';
import type { Approval, ListedApproval } from '../../../../src/client/types.ts';
import { announce } from '../../components/live-region.tsx';
import { Facts } from '../../components/side-panel.tsx';
import { ErrorPanel, Loading } from '../../components/states.tsx';
import { AgentLink, CredentialLink, Time } from '../../components/texts.tsx';
import { client, useRole, useSession } from '../../session/console-client.ts';
import { serverNow } from '../../session/server-clock.ts';
import { ExactRequest, showInvisible } from './exact-request.tsx';
import { nameOf, titleOf } from './outcomes.ts';
import type { CardRequests } from './use-cards.ts';
import { useDeliberation, useStillness } from './use-deliberation.ts';

interface Props {
  readonly requests: CardRequests;
  /** Receives the element of the card. */
  readonly onAnswered: (card: HTMLElement | null) => void;
}

const UNREADABLE = 'The request can no longer be read, so it cannot be approved. Deny it, and the agent can ask again.';
const TOO_EARLY = 'Not answered: the request must be visible for half a second first. Answer it again.';

export function ApprovalCard({ requests, onAnswered }: Props) {
  const [{ listed: first }] = requests;
  const card = useRef<HTMLElement>(null);
  const titleId = useId();
  const mayAnswer = useRole('approver');
  const reason = useRef<HTMLInputElement>(null);
  const shown = requests.flatMap(({ read: { data } }) => (data === undefined ? [] : [data]));
  const isShown = mayAnswer && shown.length === requests.length;
  const mayApprove = isShown && shown.every(isReadable);
  const { onFocus, onBlur, takesKey, takesPointer } = useDeliberation(
    isShown ? requests.map(({ listed }) => listed.approval_id).join() : null,
  );
  const { mutate, error, isPending } = useAnswer(shown, () => onAnswered(card.current));
  const hasApproved = useHasApproved(first);
  const buttons = useStillness<HTMLDivElement>();
  const [ignored, setIgnored] = useState<Ignored | null>(null);
  const ignore = (why: string): void => setIgnored((before) => ({ why, times: (before?.times ?? 0) + 1 }));
  const answer = (isApproved: boolean): void => {
    if (isPending || !isShown || (isApproved && hasApproved)) return;
    if (isApproved && !mayApprove) {
      ignore(UNREADABLE);
    } else {
      setIgnored(null);
      mutate({ isApproved, reason: reason.current?.value ?? '' });
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { key, repeat, ctrlKey, metaKey, altKey } = event;
    if (!mayAnswer || repeat || ctrlKey || metaKey || altKey || (key !== 'a' && key !== 'd')) return;
    event.preventDefault();
    if (takesKey()) answer(key === 'a');
    else ignore(TOO_EARLY);
  };
  const onClick = (isApproved: boolean) => (event: MouseEvent) => {
    // A click without a pointer was made with a key.
    const isByPointer = event.detail > 0;
    const isDeliberate = isByPointer ? takesPointer() && buttons.isStill() : takesKey();
    if (isDeliberate) answer(isApproved);
    else ignore(TOO_EARLY);
  };
  // A card that grows once its request is read would move the cards below it.
  if (mayAnswer && shown.length === 0 && requests.every(({ read }) => read.error === null)) {
    return <Loading what="a request" />;
  }
  return (
    <article ref={card} className="approval" aria-labelledby={titleId} onFocus={onFocus} onBlur={onBlur}>
      <header>
        <h2 id={titleId}>
          <Link
            href={`/approvals/${first.approval_id}`}
            aria-keyshortcuts={mayAnswer ? 'a d' : undefined}
            onKeyDown={onKeyDown}
          >
            {showInvisible(titleOf(first))}
          </Link>
        </h2>
        {requests.length > 1 && <strong className="badge warning">{requests.length} requests</strong>}
        <Countdown to={first.expires_at} />
      </header>
      <p className="covers">
        <strong>An approval allows:</strong> {first.covers}
        {requests.length > 1 && ` For each of the ${requests.length} requests.`}
      </p>
      <About requests={requests} />
      {!mayAnswer && (
        <p className="notice warning">
          Viewing and answering the request requires the approver role, which an administrator can assign under
          Settings.
        </p>
      )}
      {requests.map(({ listed, read }) =>
        read.error === null ? null : (
          <ErrorPanel key={listed.approval_id} error={read.error} onRetry={() => void read.refetch()} />
        ),
      )}
      {mayAnswer && !isShown && requests.every(({ read }) => read.error === null) && <Loading what="the request" />}
      {isShown && <Requests approvals={shown} />}
      {error !== null && <ErrorPanel error={error} />}
      {mayAnswer && (
        <div ref={buttons.element} className="answer">
          <label className="field">
            <span>Reason, if you deny it (optional)</span>
            <input ref={reason} maxLength={200} autoComplete="off" />
          </label>
          <button
            type="button"
            className="primary"
            disabled={!mayApprove || isPending || hasApproved}
            onClick={onClick(true)}
          >
            Approve{requests.length > 1 ? ` all ${requests.length}` : ''} <kbd>a</kbd>
          </button>
          <button type="button" className="danger" disabled={!isShown || isPending} onClick={onClick(false)}>
            Deny{requests.length > 1 ? ` all ${requests.length}` : ''} <kbd>d</kbd>
          </button>
        </div>
      )}
      {mayAnswer && <IgnoredAnswer ignored={ignored} />}
      {hasApproved && <p className="hint">You have approved it. More operators must approve.</p>}
    </article>
  );
}

/** Why the last answer was ignored, and how many were ignored in a row. */
interface Ignored {
  readonly why: string;
  readonly times: number;
}

/**
 * Placed below the buttons, which must not move. The region exists before its text, so that screen readers announce it.
 */
function IgnoredAnswer({ ignored }: { readonly ignored: Ignored | null }) {
  return (
    <div role="status" className="ignored-answer">
      {ignored !== null && (
        <p key={ignored.times} className="notice warning">
          {ignored.why}
        </p>
      )}
    </div>
  );
}

function useHasApproved({ approvals }: ListedApproval): boolean {
  const session = useSession();
  if (session.kind !== 'signed-in' || session.identity.isAdministrator) return false;
  return approvals.some(({ operator }) => operator === `operator:${session.identity.name}`);
}

/** The common properties of the requests, and every purpose that the agent gave for one of them. */
function About({ requests }: { readonly requests: CardRequests }) {
  const [{ listed: first }] = requests;
  const { approvals, quorum } = first;
  const purposes = [...new Set(requests.flatMap(({ listed }) => listed.purpose ?? []))];
  const names = approvals.map(({ operator }) => nameOf(operator)).join(', ');
  return (
    <Facts
      rows={[
        ['Agent', <AgentLink key="agent" name={first.agent_name} />],
        ['Credential', <CredentialLink key="path" path={first.path} />],
        // The agent's own text, which is not verified.
        ['Stated purpose', purposes.length === 0 ? null : <Purposes key="says" purposes={purposes} />],
        ['Required by', first.policy_names.join(', ')],
        ['Approvals', `${approvals.length} of ${quorum}${names === '' ? '' : `: ${names}`}`],
        ['Requested', <Time key="asked" at={first.requested_at} />],
      ]}
    />
  );
}

function Purposes({ purposes }: { readonly purposes: readonly string[] }) {
  return purposes.map((purpose, place) => (
    <span key={purpose}>
      {place > 0 && ', '}
      <q>{showInvisible(purpose)}</q>
    </span>
  ));
}

function Requests({ approvals }: { readonly approvals: readonly Approval[] }) {
  const [first, second] = approvals;
  if (first !== undefined && second === undefined) return <Shown approval={first} />;
  return (
    <ol className="requests">
      {approvals.map((approval) => (
        <li key={approval.approval_id}>
          <Shown approval={approval} />
        </li>
      ))}
    </ol>
  );
}

function Shown({ approval: { request, action } }: { readonly approval: Approval }) {
  if (request !== null) return <ExactRequest request={request} />;
  if (action === 'retrieve') return <p>The agent would see the value itself. This cannot be undone.</p>;
  return <p className="notice warning">{UNREADABLE}</p>;
}

const TICK_MS = 1000;

function toWords(leftMs: number): string {
  const seconds = Math.max(0, Math.ceil(leftMs / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const padded = (number: number): string => String(number).padStart(2, '0');
  return `${hours > 0 ? `${hours}:${padded(minutes)}` : minutes}:${padded(seconds % 60)}`;
}

function Countdown({ to }: { readonly to: string }) {
  const [leftMs, setLeftMs] = useState(() => Date.parse(to) - serverNow());
  useEffect(() => {
    const tick = (): void => setLeftMs(Date.parse(to) - serverNow());
    tick();
    const timer = setInterval(tick, TICK_MS);
    return () => clearInterval(timer);
  }, [to]);
  return (
    <span className="countdown" role="timer" aria-live="off">
      {leftMs > 0 ? `${toWords(leftMs)} left` : 'no time left'}
    </span>
  );
}

interface GivenAnswer {
  readonly isApproved: boolean;
  readonly reason: string;
}

function useAnswer(shown: readonly Approval[], onAnswered: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ isApproved, reason }: GivenAnswer) => {
      const given = reason.trim() === '' ? {} : { reason: reason.trim() };
      const results = await Promise.allSettled(
        shown.map(({ approval_id, nonce }) =>
          isApproved
            ? client.approvals.approve(approval_id, nonce)
            : client.approvals.deny(approval_id, { nonce, ...given }),
        ),
      );
      const failed = results.find((result) => result.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    },
    onSuccess: (answered, { isApproved }) => {
      const isWaiting = answered.some(({ status }) => status === 'pending');
      const what = answered.length === 1 ? 'The request' : `${answered.length} requests`;
      const verb = isApproved ? 'approved' : 'denied';
      announce(isWaiting ? `${what}: your approval counts; more are needed.` : `${what}: ${verb}.`);
      onAnswered();
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['approvals'] }),
  });
}
