/**
 * The live region for results: `announce('12 entries are saved.')`. Screen readers read it, and it is visible for some
 * seconds, without taking the focus or the pointer.
 */
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';

interface Message {
  readonly text: string;
  /** Whether the text is also visible. */
  readonly isShown: boolean;
}

const SHOWN_MS = 7000;

let message: Message = { text: '', isShown: false };
/** The text to announce when the visible message has expired. */
let quietNext: string | null = null;
let isInSight = false;
const listeners = new Set<() => void>();

/** Announces an equal text again: an invisible character makes it different. */
function say(text: string, isShown: boolean): void {
  message = { text: text === message.text ? `${text}\u200b` : text, isShown };
  for (const listener of listeners) listener();
}

/** Announces a result that the page does not show otherwise. */
export function announce(text: string): void {
  isInSight = true;
  say(text, true);
}

/**
 * Announces content that the page already shows, such as the number of rows, to screen readers only. A visible result
 * stays until it expires.
 */
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
    // A dialog that was opened later covers the region, so the region is put on top again.
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
