/** Shown in place of data: while it is loading, if an operation failed, and if there is none. */
import type { ReactNode } from 'react';
import { LeaseholdError } from '../../../src/client/errors.ts';
import { Copyable } from './texts.tsx';

/** Delayed, so that fast responses do not flicker. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p className="loading" role="status">
      Loading {what}…
    </p>
  );
}

interface QueryStateProps {
  readonly query: { readonly isPending: boolean; readonly error: unknown; readonly refetch: () => unknown };
  readonly what: string;
}

/** Shows that a query is loading or has failed; nothing once it has data. */
export function QueryState({ query: { isPending, error, refetch }, what }: QueryStateProps) {
  if (error !== null) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  return isPending ? <Loading what={what} /> : null;
}

interface EmptyProps {
  readonly title: string;
  /** A command for the first step. */
  readonly command?: string;
  readonly children: ReactNode;
}

/** The content of an empty page: the reason, and the first step. */
export function EmptyState({ title, command, children }: EmptyProps) {
  return (
    <section className="empty">
      <h2>{title}</h2>
      <p>{children}</p>
      {command !== undefined && <Copyable text={command} what="the command" />}
    </section>
  );
}

interface ErrorProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
}

/** Advice by error code; the message describes the error. */
const ADVICE: Readonly<Record<string, string>> = {
  ACCESS_DENIED:
    'Your roles or your policies do not allow this. An administrator can change roles under Settings and policies under Access.',
  ALREADY_EXISTS: 'Choose another name, or open the one that exists and change it.',
  PRECONDITION_FAILED:
    'It was changed or deleted since you opened it. Check its current state before you repeat your change.',
  UNAUTHENTICATED: 'Sign in again.',
  APPROVAL_PENDING: 'An operator must approve the request under Approvals. Then try again.',
  VAULT_LOCKED: 'Unlock the vault on the server’s machine: leasehold unlock.',
  UNAVAILABLE: 'Try again in a few seconds.',
  UNREACHABLE: 'Check that the server is running and reachable from this machine, then try again.',
  TIMED_OUT: 'The server is slow or unreachable. Try again.',
  RATE_LIMITED: 'Wait a moment, then try again.',
  NOT_FOUND: 'It may have been deleted in the meantime.',
  INVALID_REQUEST: 'Correct the field in the message.',
  INTERNAL_ERROR: 'Give the request id to an administrator. The server log shows the cause.',
  INVALID_RESPONSE: 'The console and the server may have different versions. Reload the page.',
};
const UNKNOWN = 'Reload the page; a new version may have been installed. If it happens again, report the cause.';

/** The cause of an error that neither the server nor its client made. */
const causeOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error);

/** The error, the advice, and the code and request id for the server log. */
export function ErrorPanel({ error, onRetry }: ErrorProps) {
  const known = error instanceof LeaseholdError ? error : null;
  const advice = known === null ? UNKNOWN : ADVICE[known.code];
  return (
    <section className="notice danger error-panel" role="alert">
      <p>
        <strong>{known?.message ?? 'The operation failed.'}</strong>
      </p>
      {advice !== undefined && <p>{advice}</p>}
      <dl className="error-facts">
        <dt>{known === null ? 'Cause' : 'Code'}</dt>
        <dd>
          <code>{known?.code ?? causeOf(error)}</code>
        </dd>
        {known !== null && known.requestId !== null && (
          <>
            <dt>Request</dt>
            <dd>
              <Copyable text={known.requestId} what="the request id" />
            </dd>
          </>
        )}
      </dl>
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </section>
  );
}
