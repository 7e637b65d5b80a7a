/** The one region that announces results to screen readers: `announce('12 entries found')`. */
import { useSyncExternalStore } from 'react';

let message = '';
const listeners = new Set<() => void>();

/** An equal text is announced again, because an invisible character changes it. */
export function announce(text: string): void {
  message = text === message ? `${text}\u200b` : text;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function LiveRegion() {
  const text = useSyncExternalStore(subscribe, () => message);
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {text}
    </div>
  );
}
