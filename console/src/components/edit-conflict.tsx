/**
 * Edits on top of the state that the operator saw. If the resource was changed or deleted in the meantime, nothing is
 * saved. The operator starts again from the current state, or applies the edited fields on top of it.
 */
import { useState } from 'react';
import { LeaseholdError } from '../../../src/client/errors.ts';
import type { Tagged } from '../../../src/client/leasehold.ts';
import type { AuditEntry } from '../../../src/client/types.ts';
import type { ChangedKind } from '../../../src/vault/audit/audit-entry.ts';
import { client } from '../session/console-client.ts';
import { Time } from './texts.tsx';

interface Conflict<T> {
  /** The state that is stored now; null if it was deleted. */
  readonly current: Tagged<T> | null;
  /** The entry of the last change; null if the audit log cannot be read. */
  readonly change: Pick<AuditEntry, 'agent_name' | 'timestamp'> | null;
}

export interface EditSubject {
  /** Subject of the sentence, such as `The policy ci-reads`. */
  readonly what: string;
  readonly kind: ChangedKind;
  /** Name or path. */
  readonly name: string;
}

const isConflict = (error: unknown): error is LeaseholdError =>
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
async function findConflict<T>(failure: unknown, { kind, name }: EditSubject): Promise<Conflict<T> | null> {
  if (!isConflict(failure) || failure.current === undefined) return null;
  const change = await client.audit.lastChange(kind, name).catch(() => null);
  // The resource of the request, whose failure this is, is a T.
  return { current: failure.current as Tagged<T> | null, change };
}

interface EditOptions<T> {
  readonly subject: EditSubject;
  /** When the edited fields can be kept; `always` also creates a deleted resource again. */
  readonly keeps: 'always' | 'if it exists' | 'never';
  /** Shows the current state; null if the resource was deleted. */
  readonly onReload: (current: Tagged<T> | null) => unknown;
}

/** `initial`: null for a new resource. */
export function useEdit<T>(initial: Tagged<T> | null, { subject, keeps, onReload }: EditOptions<T>) {
  // WHY kept: the page may read a newer state, which the operator has not yet seen.
  const [base, setBase] = useState(initial);
  const [conflict, setConflict] = useState<Conflict<T> | null>(null);
  const current = conflict?.current ?? null;
  const canKeep = keeps === 'always' || (keeps === 'if it exists' && current !== null);
  const keep = (): void => {
    setBase(current);
    setConflict(null);
  };
  const reload = async (): Promise<void> => {
    if (current !== null) setBase(current);
    await onReload(current);
    setConflict(null);
  };
  return {
    /** The state on which the next save is based. */
    base,
    isBlocked: conflict !== null,
    /** Returns whether the failure is a conflict, which the notice then reports. */
    catchConflict: async (failure: unknown): Promise<boolean> => {
      const found = await findConflict<T>(failure, subject).catch(() => null);
      setConflict(found);
      return found !== null;
    },
    notice: conflict !== null && (
      <ConflictNotice
        what={subject.what}
        conflict={conflict}
        onReload={() => void reload()}
        onKeep={canKeep ? keep : null}
      />
    ),
  };
}

interface Props {
  readonly what: string;
  readonly conflict: Conflict<unknown>;
  readonly onReload: () => void;
  /** Keeps the edited fields, to save them on top of the current state; null if that is not possible. */
  readonly onKeep: (() => void) | null;
}

function ConflictNotice({ what, conflict: { current, change }, onReload, onKeep }: Props) {
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
