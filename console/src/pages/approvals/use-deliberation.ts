/**
 * Keeps an answer from reaching a card that the operator has not seen. A card accepts an answer only after it was shown
 * unchanged for half a second, and from the keyboard only if the focus was in it as long. WHY: cards appear and
 * disappear while the operator types or points, and a double click can begin in another window.
 */
import { type FocusEvent, useEffect, useMemo, useRef } from 'react';

const DELIBERATION_MS = 500;
/** Events of a window that comes to the front or leaves it. */
const WINDOW_EVENTS = ['blur', 'focus', 'visibilitychange'] as const;

/** `content`: the shown content; null while it is read. */
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

const STILL_MS = 500;
const SAMPLE_INTERVAL_MS = 50;
/** Fractions of a pixel come from rounding. */
const TOLERANCE_PX = 1;

/**
 * Tells whether an element has stayed at its place in the window for half a second. WHY: a card that moves, because
 * another one appeared, grew or left, can arrive under a pointer that was aimed at something else. The place is
 * measured, so that every cause of a move counts, including scrolling.
 */
export function useStillness<E extends Element>() {
  const element = useRef<E>(null);
  const stillness = useMemo(() => {
    let movedAt = Number.POSITIVE_INFINITY;
    let before: DOMRect | null = null;
    const sample = (): void => {
      const place = element.current?.getBoundingClientRect() ?? null;
      if (place === null || before === null || isMoved(before, place)) {
        movedAt = performance.now();
        before = place;
      }
    };
    const isStill = (): boolean => {
      // A move since the last sample also counts.
      sample();
      return performance.now() - movedAt >= STILL_MS;
    };
    return { element, sample, isStill };
  }, []);
  useEffect(() => {
    const timer = setInterval(stillness.sample, SAMPLE_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [stillness]);
  return stillness;
}

const isMoved = (before: DOMRect, { top, left }: DOMRect): boolean =>
  Math.abs(top - before.top) > TOLERANCE_PX || Math.abs(left - before.left) > TOLERANCE_PX;
