/** The heading of a page, and the title of the window: the number of pending approvals, and the page. */
import { type ReactNode, useEffect, useRef } from 'react';

interface Props {
  readonly title: string;
  /** Buttons of the page, at the end of the line. */
  readonly children?: ReactNode;
}

export function PageHeading({ title, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    setPageTitle(title);
    heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <div className="page-heading">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children !== undefined && <div className="page-actions">{children}</div>}
    </div>
  );
}

let [page, waiting] = ['', 0];

function show(): void {
  document.title = `${waiting === 0 ? '' : `(${waiting}) `}${page === '' ? '' : `${page} · `}Leasehold`;
}

function setPageTitle(title: string): void {
  page = title;
  show();
}

export function setWaitingCount(count: number): void {
  waiting = count;
  show();
}
