/**
 * Compiles the values to mask, once for all streams of a program. Masking guards against accidents, not against a
 * hostile program.
 */
import type { Secret } from '../vault/credentials/credential.ts';
import { Automaton } from './aho-corasick.ts';
import { Masker } from './masker.ts';
import { Patterns } from './plain-forms.ts';

/** The bytes of CR CR LF, the line end of a terminal inside a terminal. */
const FEWEST_BREAKS = 3;
const MOST_BREAKS = 64;
/** Maskers that are kept for later streams; each takes 40 KiB. */
const MAX_IDLE = 16;

export interface Masking {
  /** Names of the values that are too short to be masked, in the given order. */
  readonly tooShort: readonly string[];
  readonly isNeeded: boolean;
  /** States of the automaton; each takes about 30 bytes. */
  readonly states: number;
  /** A masker for one stream of bytes. `windowBytes`: see `Masker`. */
  masker(windowBytes?: number): Masker;
  /** Takes back a masker whose stream has ended. WHY: creating one takes as long as masking a small text. */
  reuse(masker: Masker): void;
}

/**
 * Compiles the values. Names are used only in warnings. Equal patterns, of equal or different values, are stored once,
 * for the lifetime of the masking.
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
