/** The heading of a page. It takes the focus when the page opens, so that a screen reader announces the new page. */
import { type ReactNode, useEffect, useRef } from 'react';
import { setPageTitle } from '../shell/page-title.ts';

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
