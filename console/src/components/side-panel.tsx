/**
 * The details of a row, next to the list and over it on a narrow window. Its heading takes the focus, which returns to
 * what opened it. Escape closes it.
 */
import { type ReactNode, useEffect, useId, useRef } from 'react';

interface Props {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function SidePanel({ title, onClose, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  const opener = useRef<Element | null>(null);
  const titleId = useId();
  useEffect(() => {
    if (title === '') return undefined;
    const takeFocus = (): void => {
      // Another title in the same panel: the opener stays.
      if (!isInPanel(document.activeElement)) opener.current = document.activeElement;
      heading.current?.focus();
    };
    // Under an open dialog nothing takes the focus. When it closes, the focus is first on what had opened it.
    const dialog = document.querySelector('dialog[open]');
    if (dialog === null) takeFocus();
    else dialog.addEventListener('close', takeFocus, { once: true });
    return () => dialog?.removeEventListener('close', takeFocus);
  }, [title]);
  useEffect(() => () => returnFocus(opener.current), []);
  useEffect(() => {
    const onKey = ({ key, defaultPrevented }: KeyboardEvent): void => {
      if (key === 'Escape' && !defaultPrevented && document.querySelector('dialog[open]') === null) onClose();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [onClose]);
  return (
    <aside className="panel" aria-labelledby={titleId}>
      <div className="panel-head">
        <h2 id={titleId} ref={heading} tabIndex={-1}>
          {title}
        </h2>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
      <div className="panel-body">{children}</div>
    </aside>
  );
}

const isInPanel = (element: Element | null): boolean => element?.closest('.panel') != null;

/** Returns the focus of a closed panel. What has the focus by then keeps it; an opener that was removed is replaced by its list. */
function returnFocus(opener: Element | null): void {
  const { activeElement, body } = document;
  if (activeElement !== null && activeElement !== body) return;
  const isThere = opener instanceof HTMLElement && opener !== body && opener.isConnected;
  const place = isThere ? (opener.closest('[role="grid"]') ?? opener) : document.querySelector('main [role="grid"]');
  const target = place ?? document.querySelector('main h1');
  if (target instanceof HTMLElement) target.focus();
}

/** Names and values of one thing. */
export function Facts({ rows }: { readonly rows: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? '–'}</dd>
        </div>
      ))}
    </dl>
  );
}
