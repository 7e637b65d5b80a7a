/**
 * The one region that says what happened: `announce('12 entries are saved.')`. Screen readers read it, and it is in sight
 * for some seconds, without taking the focus or the pointer.
 */
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';

interface Message {
  readonly text: string;
  /** Whether it is in sight, too. */
  readonly isShown: boolean;
}

const SHOWN_MS = 7000;

let message: Message = { text: '', isShown: false };
/** Said when the message in sight has had its time. */
let quietNext: string | null = null;
let isInSight = false;
const listeners = new Set<() => void>();

/** An equal text is announced again, because an invisible character changes it. */
function say(text: string, isShown: boolean): void {
  message = { text: text === message.text ? `${text}\u200b` : text, isShown };
  for (const listener of listeners) listener();
}

/** A result that the page does not show otherwise. */
export function announce(text: string): void {
  isInSight = true;
  say(text, true);
}

/** What the page shows already, such as the number of rows: for screen readers alone. A result stays in sight before. */
export function announceQuietly(text: string): void {
  if (isInSight) quietNext = text;
  else say(text, false);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function LiveRegion() {
  const region = useRef<HTMLDivElement>(null);
  const current = useSyncExternalStore(subscribe, () => message);
  const [hidden, setHidden] = useState<Message | null>(null);
  const isVisible = current.isShown && current !== hidden;
  useEffect(() => {
    // A dialog that was opened later is above it: it is put on top again.
    if (current.isShown && document.querySelector('dialog[open]') !== null) region.current?.hidePopover();
    if (region.current?.matches(':popover-open') === false) region.current.showPopover();
    if (!current.isShown) return undefined;
    const end = (): void => {
      isInSight = false;
      setHidden(current);
      const next = quietNext;
      quietNext = null;
      if (next !== null) say(next, false);
    };
    const timer = setTimeout(end, SHOWN_MS);
    return () => clearTimeout(timer);
  }, [current]);
  return (
    <div
      ref={region}
      popover="manual"
      className={isVisible ? 'toast' : 'visually-hidden'}
      role="status"
      aria-live="polite"
    >
      {current.text}
    </div>
  );
}
