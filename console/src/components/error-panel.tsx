/** The error panel of the console: the error, the advice, and the code and request id for the server log. */
import { LeaseholdError } from '../../../src/client/errors.ts';
import { Copyable } from './copyable.tsx';

interface Props {
  readonly error: unknown;
  readonly onRetry?: () => void;
}

/** Advice by error code; the message describes the error. */
const ADVICE: Readonly<Record<string, string>> = {
  ACCESS_DENIED:
    'Your roles, or the policies that limit what you may change, do not include this. An administrator can change roles under Settings and policies under Access.',
  ALREADY_EXISTS: 'Choose another name, or open the one that exists and change it.',
  PRECONDITION_FAILED:
    'Somebody changed or deleted it since you read it. Look at what it is now before you repeat your change.',
  UNAUTHENTICATED: 'Sign in again.',
  APPROVAL_PENDING: 'Nothing was refused: an operator has to approve it under Approvals. Then try again.',
  VAULT_LOCKED: 'Unlock the vault on the machine of the server: leasehold unlock.',
  UNAVAILABLE: 'Try again in a few seconds.',
  UNREACHABLE: 'Check that the server runs and that this machine reaches it, then try again.',
  TIMED_OUT: 'The server is slow or unreachable. Try again.',
  RATE_LIMITED: 'Wait a moment, then try again.',
  NOT_FOUND: 'It may have been deleted in the meantime.',
  INVALID_REQUEST: 'Correct the field that the message names.',
  INTERNAL_ERROR: 'Give the request id to the operator of the server; its log has the cause.',
  INVALID_RESPONSE: 'The console and the server may have different versions. Reload the page.',
};
const UNKNOWN = 'Reload the page; a new version may have been installed. If it happens again, report the cause.';

/** The cause of an error that neither the server nor its client made. */
const causeOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error);

export function ErrorPanel({ error, onRetry }: Props) {
  const known = error instanceof LeaseholdError ? error : null;
  const message = known?.message ?? 'The console could not do this.';
  const advice = known === null ? UNKNOWN : ADVICE[known.code];
  return (
    <section className="notice danger error-panel" role="alert">
      <p>
        <strong>{message}</strong>
      </p>
      {advice !== undefined && <p>{advice}</p>}
      {known === null ? (
        <dl className="error-facts">
          <dt>Cause</dt>
          <dd>
            <code>{causeOf(error)}</code>
          </dd>
        </dl>
      ) : (
        <dl className="error-facts">
          <dt>Code</dt>
          <dd>
            <code>{known.code}</code>
          </dd>
          {known.requestId !== null && (
            <>
              <dt>Request</dt>
              <dd>
                <Copyable text={known.requestId} what="the request id" />
              </dd>
            </>
          )}
        </dl>
      )}
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </section>
  );
}
