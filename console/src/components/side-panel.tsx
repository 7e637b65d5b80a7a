/**
 * The details of a row, beside the list, or over it in a narrow window. Its heading takes the focus, which later
 * returns to the element that opened the panel. Escape closes the panel.
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
      // Only the title of the panel changed, so the opener stays.
      if (!isInPanel(document.activeElement)) opener.current = document.activeElement;
      heading.current?.focus();
    };
    // While a dialog is open, nothing behind it takes the focus. When it closes, its opener receives the focus first.
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

/**
 * Returns the focus of a closed panel. An element that took the focus in the meantime keeps it. If the opener was
 * removed, its list receives the focus.
 */
function returnFocus(opener: Element | null): void {
  const { activeElement, body } = document;
  if (activeElement !== null && activeElement !== body) return;
  const isThere = opener instanceof HTMLElement && opener !== body && opener.isConnected;
  const place = isThere ? (opener.closest('[role="grid"]') ?? opener) : document.querySelector('main [role="grid"]');
  const target = place ?? document.querySelector('main h1');
  if (target instanceof HTMLElement) target.focus();
}

/** Names and values of one resource. */
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
