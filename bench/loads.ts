// What the load generator is asked, and what it answers. Plain data between two processes.

/** Whom a load falls on: paths and tokens follow from the numbers. */
export interface Target {
  readonly address: string;
  readonly credentials: number;
  readonly agents: number;
}

/** Retrievals: each connection sends its next request when it has its answer. */
export interface FullJob {
  readonly kind: 'full';
  readonly target: Target;
  readonly connections: number;
  readonly amount: number;
}

export type LoadJob =
  | FullJob
  /** Retrievals at moments that were set before, whatever the server does. */
  | {
      readonly kind: 'paced';
      readonly target: Target;
      readonly connections: number;
      readonly perSecond: number;
      readonly seconds: number;
    }
  /** Challenge, signature, verify. */
  | { readonly kind: 'logins'; readonly target: Target; readonly connections: number; readonly amount: number }
  /** New credentials, numbered from `first`. */
  | {
      readonly kind: 'stores';
      readonly target: Target;
      readonly adminToken: string;
      readonly first: number;
      readonly connections: number;
      readonly amount: number;
    };

export interface LoadResult {
  /** Answers as they were wanted; whatever else came is an error of the run. */
  readonly answered: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Share of one core that the generator used itself. */
  readonly busy: number;
}
