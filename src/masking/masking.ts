/**
 * Compiles the values to mask, once for all streams of a program. Masking guards against accidents, not against a
 * hostile program.
 */
import type { Secret } from '../vault/credentials/credential.ts';
import { Automaton } from './aho-corasick.ts';
import { Masker } from './masker.ts';
import { Patterns } from './plain-forms.ts';

/** CR CR LF, the line end of a terminal inside a terminal. */
const FEWEST_BREAKS = 3;
const MOST_BREAKS = 64;
/** Maskers that are kept for the next streams; each has 40 KiB. */
const MAX_IDLE = 16;

export interface Masking {
  /** Names of the values that are too short to be masked, in the given order. */
  readonly tooShort: readonly string[];
  readonly isNeeded: boolean;
  /** States of the automaton; each has about 30 bytes. */
  readonly states: number;
  /** A masker for one stream of bytes. `windowBytes`: see `Masker`. */
  masker(windowBytes?: number): Masker;
  /** Takes back a masker whose stream has ended. WHY: making one takes as long as masking a small text. */
  reuse(masker: Masker): void;
}

/**
 * Names are used in warnings only. Equal patterns, of equal or different values, are stored once, as long as the
 * masking exists.
 */
export function createMasking(values: Iterable<readonly [name: string, value: Secret]>): Masking {
  const pieces = compileMasking(values);
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}

/** Does the work of `createMasking` in pieces of a few milliseconds, and yields between them. */
export function* compileMasking(
  values: Iterable<readonly [name: string, value: Secret]>,
): Generator<undefined, Masking> {
  const patterns = new Patterns();
  const isMasked = new Map<string, boolean>();
  const tooShort: string[] = [];
  let breaks = 0;
  for (const [name, value] of values) {
    const text = value.reveal();
    if (!isMasked.has(text)) {
      isMasked.set(text, yield* patterns.add(text));
      for (const [run] of text.matchAll(/[\r\n]+/g)) breaks = Math.max(breaks, run.length);
    }
    if (isMasked.get(text) === false) tooShort.push(name);
  }
  const automaton = yield* Automaton.build(patterns.all);
  const mostBreaks = Math.min(MOST_BREAKS, Math.max(FEWEST_BREAKS, 2 * breaks));
  const idle: Masker[] = [];
  return {
    tooShort,
    isNeeded: patterns.all.length > 0,
    states: automaton.size,
    masker(windowBytes) {
      const index = idle.findIndex((masker) => masker.windowBytes === (windowBytes ?? null));
      const [known] = index === -1 ? [] : idle.splice(index, 1);
      known?.restart();
      return known ?? new Masker(automaton, mostBreaks, windowBytes);
    },
    reuse(masker) {
      if (idle.length < MAX_IDLE) idle.push(masker);
    },
  };
}
