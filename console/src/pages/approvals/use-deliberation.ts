/**
 * Keeps an answer from reaching a card that the person has not seen: a card takes one only after it was shown
 * unchanged for half a second, and from the keyboard only if the focus was in it as long. WHY: cards appear and leave
 * while a person types or points, and another window can lead a double click into this one.
 */
import { type FocusEvent, useEffect, useMemo, useRef } from 'react';

const DELIBERATION_MS = 500;
/** The window comes to the front or leaves it. */
const WINDOW_EVENTS = ['blur', 'focus', 'visibilitychange'] as const;

/** `content`: what is shown; null while it is read. */
export function useDeliberation(content: string | null) {
  const shownAt = useRef(Number.POSITIVE_INFINITY);
  const focusedAt = useRef(Number.POSITIVE_INFINITY);
  useEffect(() => {
    shownAt.current = content === null ? Number.POSITIVE_INFINITY : performance.now();
  }, [content]);
  useEffect(() => {
    const restart = (): void => {
      for (const since of [shownAt, focusedAt]) {
        if (since.current !== Number.POSITIVE_INFINITY) since.current = performance.now();
      }
    };
    for (const name of WINDOW_EVENTS) addEventListener(name, restart);
    return () => {
      for (const name of WINDOW_EVENTS) removeEventListener(name, restart);
    };
  }, []);
  return useMemo(
    () => ({
      takesPointer: () => performance.now() - shownAt.current >= DELIBERATION_MS,
      takesKey: () => performance.now() - Math.max(shownAt.current, focusedAt.current) >= DELIBERATION_MS,
      onFocus: ({ currentTarget, relatedTarget }: FocusEvent) => {
        if (!currentTarget.contains(relatedTarget)) focusedAt.current = performance.now();
      },
      onBlur: ({ currentTarget, relatedTarget }: FocusEvent) => {
        if (!currentTarget.contains(relatedTarget)) focusedAt.current = Number.POSITIVE_INFINITY;
      },
    }),
    [],
  );
}
