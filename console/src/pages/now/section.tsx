/** A section of the page: its heading, its count, and the link to the full page. */
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useId } from 'react';
import { Link } from 'wouter';
import { LeaseholdError } from '../../../../src/client/errors.ts';
import { ErrorPanel, Loading } from '../../components/states.tsx';

interface Props {
  readonly title: string;
  readonly count?: number | undefined;
  /** Replaces the content if the read found nothing. */
  readonly empty?: { readonly isEmpty: boolean; readonly text: string };
  readonly more?: { readonly href: string; readonly text: string };
  /** The read that fills the section. */
  readonly query: {
    readonly isPending: boolean;
    readonly error: unknown;
    readonly refetch: () => unknown;
  };
  readonly children: ReactNode;
}

/** Whether the error concerns every read. The notice at the top of the page then reports it once. */
const isReportedAtTop = (error: unknown): boolean =>
  error instanceof LeaseholdError && (error.code === 'UNREACHABLE' || error.code === 'VAULT_LOCKED');

export function Section({ title, count, empty, more, query, children }: Props) {
  const titleId = useId();
  const queries = useQueryClient();
  const { error, isPending } = query;
  const isReported = isReportedAtTop(error);
  useEffect(() => {
    if (isReported) void queries.invalidateQueries({ queryKey: ['health'] }, { cancelRefetch: false });
  }, [isReported, queries]);
  const isKnownEmpty = error === null && empty?.isEmpty === true;
  return (
    <section className="now-section" aria-labelledby={titleId}>
      <div className="now-head">
        <h2 id={titleId}>{count === undefined ? title : `${title} (${count.toLocaleString('en')})`}</h2>
        {more !== undefined && <Link href={more.href}>{more.text}</Link>}
      </div>
      {isReported && <p className="hint">Not current: see the notice at the top.</p>}
      {error !== null && !isReported && <ErrorPanel error={error} onRetry={() => void query.refetch()} />}
      {isPending ? <Loading what={title.toLowerCase()} /> : !isKnownEmpty && children}
      {isKnownEmpty && <p className="hint">{empty.text}</p>}
    </section>
  );
}
