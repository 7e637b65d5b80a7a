// What the parts of a run have in common: what they are given, and what they hand back.

import type { Scope } from '../test/kit/directory.ts';
import type { Generator } from './generator.ts';
import type { Plan } from './plan.ts';

/** Says how far the bench is. */
export type Say = (line: string) => void;

export interface Stage {
  readonly scope: Scope;
  readonly say: Say;
  readonly plan: Plan;
  readonly generator: Generator;
}

/** The median of the rounds, with the smallest and the largest. */
export interface Measure {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** `at least` and `at most` hold at the limit itself. */
export type Bound = { readonly kind: 'at least' | 'at most' | 'below'; readonly limit: number };

/** Figures are known by their names from run to run. */
export interface Figure extends Measure {
  readonly name: string;
  /** '' for a ratio. */
  readonly unit: string;
  readonly rounds: number;
  readonly required: Bound | null;
}

export interface Point extends Measure {
  readonly x: number;
}

export interface Curve {
  /** Of its file, without the ending. */
  readonly name: string;
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly isLogarithmic: boolean;
  readonly series: readonly { readonly name: string; readonly points: readonly Point[] }[];
}

export interface Findings {
  readonly figures: readonly Figure[];
  readonly curves: readonly Curve[];
  /** What stands behind the figures, a line each. */
  readonly notes: readonly string[];
}

export type Part = (stage: Stage) => Promise<Findings>;
