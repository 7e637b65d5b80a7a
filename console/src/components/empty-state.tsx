/** The content of an empty page: the reason, and the first step. */
import type { ReactNode } from 'react';
import { Copyable } from './copyable.tsx';

interface Props {
  readonly title: string;
  /** A command for the first step. */
  readonly command?: string;
  readonly children: ReactNode;
}

export function EmptyState({ title, command, children }: Props) {
  return (
    <section className="empty">
      <h2>{title}</h2>
      <p>{children}</p>
      {command !== undefined && <Copyable text={command} what="the command" />}
    </section>
  );
}
