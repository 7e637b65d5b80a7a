// The data that the benchmark's parts share. Jobs and results are plain data, because they cross a process boundary.

import type { Scope } from '../test/kit/directory.ts';
import type { Generator } from './generator.ts';
import type { Plan } from './plan.ts';

export interface Stage {
  readonly scope: Scope;
  /** Prints a line of progress. */
  readonly say: (line: string) => void;
  readonly plan: Plan;
  readonly generator: Generator;
}

/** The median of the rounds, the smallest and the largest. Runs are compared by the figures' names. */
export interface Figure {
  readonly name: string;
  /** '' for a ratio. */
  readonly unit: string;
  readonly rounds: number;
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** Measures one subject. */
export type Part = (stage: Stage) => Promise<Figure[]>;

/** The server under load, and the numbers of credentials and agents that it has. */
export interface Target {
  readonly address: string;
  readonly credentials: number;
  readonly agents: number;
}

interface Job {
  readonly target: Target;
  readonly connections: number;
}

/** Closed loop: each connection sends its next request when it has its response. */
interface ClosedJob extends Job {
  readonly amount: number;
}

export interface RetrievalJob extends ClosedJob {
  readonly kind: 'retrievals';
}

/** Challenge, signature, verify. */
export interface LoginJob extends ClosedJob {
  readonly kind: 'logins';
}

/** New credentials, numbered from `first`. */
export interface StoreJob extends ClosedJob {
  readonly kind: 'stores';
  readonly adminToken: string;
  readonly first: number;
}

/** The same use again and again. */
export interface UseJob extends ClosedJob {
  readonly kind: 'uses';
  readonly token: string;
  readonly call: { readonly path: string; readonly method: string; readonly url: string };
}

/** Open loop: retrievals at times fixed in advance. */
export interface PacedJob extends Job {
  readonly kind: 'paced';
  readonly perSecond: number;
  readonly seconds: number;
}

export type LoadJob = RetrievalJob | PacedJob | LoginJob | StoreJob | UseJob;

export interface LoadResult {
  /** Expected responses. Any other response fails the run. */
  readonly answered: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}
