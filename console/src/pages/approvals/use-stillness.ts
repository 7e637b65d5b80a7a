/**
 * Knows whether an element has kept its place in the window for half a second. WHY: a card that moves, because another
 * one came, grew or left, can arrive under a pointer that was on its way to something else. The place is measured, so
 * that every cause of a move counts, also scrolling.
 */
import { useEffect, useMemo, useRef } from 'react';

const STILL_MS = 500;
const SAMPLE_INTERVAL_MS = 50;
/** Fractions of a pixel come from rounding. */
const TOLERANCE_PX = 1;

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
      // A move since the last sample counts, too.
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
