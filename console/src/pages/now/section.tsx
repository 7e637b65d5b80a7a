/** A part of the page: its heading, what it counts, and the link to the page with everything. */
import type { ReactNode } from 'react';
import { useId } from 'react';
import { Link } from 'wouter';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { Loading } from '../../components/loading.tsx';

interface Props {
  readonly title: string;
  readonly count?: number | undefined;
  readonly more?: { readonly href: string; readonly text: string };
  /** Of the read that fills the part. */
  readonly query: {
    readonly isPending: boolean;
    readonly error: unknown;
    readonly refetch: () => unknown;
  };
  readonly children: ReactNode;
}

export function Section({ title, count, more, query, children }: Props) {
  const titleId = useId();
  return (
    <section className="now-section" aria-labelledby={titleId}>
      <div className="now-head">
        <h2 id={titleId}>{count === undefined ? title : `${title} (${count.toLocaleString('en')})`}</h2>
        {more !== undefined && <Link href={more.href}>{more.text}</Link>}
      </div>
      {query.error !== null && <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending ? <Loading what={title.toLowerCase()} /> : children}
    </section>
  );
}
