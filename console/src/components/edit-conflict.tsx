/**
 * Reports that the resource being edited was changed or deleted in the meantime. Nothing is saved. The operator starts
 * again from the present state, or applies the edited fields on top of it.
 */
import { LeaseholdError } from '../../../src/client/errors.ts';
import type { Tagged } from '../../../src/client/leasehold.ts';
import type { AuditEntry } from '../../../src/client/types.ts';
import type { EventType } from '../../../src/core/permissions.ts';
import { client } from '../session/console-client.ts';
import { Time } from './time.tsx';

export interface Conflict<T> {
  /** The state that is stored now; null if it was deleted. */
  readonly current: Tagged<T> | null;
  /** The entry of the last change; null if the audit log cannot be read. */
  readonly change: Pick<AuditEntry, 'agent_name' | 'timestamp'> | null;
}

interface Subject {
  /** The resource name in the audit entries of its changes. */
  readonly resource: string;
  readonly events: readonly EventType[];
}

export const isConflict = (error: unknown): error is LeaseholdError =>
  error instanceof LeaseholdError && error.code === 'PRECONDITION_FAILED';

/** Refreshes what is shown if the change fails because the resource has changed, and then throws the failure. */
export async function refreshOnConflict<T>(change: Promise<T>, refresh: () => Promise<unknown>): Promise<T> {
  try {
    return await change;
  } catch (failure) {
    if (isConflict(failure)) await refresh();
    throw failure;
  }
}

/** The conflict; null for any other failure. */
export async function findConflict<T>(failure: unknown, { resource, events }: Subject): Promise<Conflict<T> | null> {
  if (!isConflict(failure) || failure.current === undefined) return null;
  const change = await client.audit.lastChange(resource, events).catch(() => null);
  // The resource of the request, whose failure this is, is a T.
  return { current: failure.current as Tagged<T> | null, change };
}

interface Props {
  /** Subject of the sentence, such as `The policy ci-reads`. */
  readonly what: string;
  readonly conflict: Conflict<unknown>;
  readonly onReload: () => void;
  /** Keeps the edited fields, to save them on top of the present state; null if that is not possible. */
  readonly onKeep: (() => void) | null;
}

export function ConflictNotice({ what, conflict: { current, change }, onReload, onKeep }: Props) {
  const verb = current === null ? 'deleted' : 'changed';
  return (
    <section className="notice warning conflict" role="alert" aria-label="Changed in the meantime">
      <p>
        <strong>
          {what} was {verb} since you opened it. Nothing was saved.
        </strong>
      </p>
      {change !== null && (
        <p>
          {change.agent_name} {verb} it at <Time at={change.timestamp} />.
        </p>
      )}
      <p>
        {current === null ? 'Reload closes this form.' : 'Reload shows the current state and discards your changes.'}
        {onKeep !== null && ' Keep mine keeps your fields. The next save applies them on top of the current state.'}
      </p>
      <div className="buttons">
        <button type="button" onClick={onReload}>
          Reload
        </button>
        {onKeep !== null && (
          <button type="button" onClick={onKeep}>
            Keep mine
          </button>
        )}
      </div>
    </section>
  );
}
