// How much a run measures: a full one, a quick one of a minute, and a trial, whose figures mean nothing, that shows in a minute
// that every part works.

export interface Plan {
  readonly name: 'full' | 'quick' | 'trial';
  /** About how long the run takes. */
  readonly minutes: number;
  readonly rounds: number;
  /** Of a round of full load, and of one of half of it. */
  readonly seconds: number;
  readonly halfSeconds: number;
  /** Numbers of connections, in the order of their rounds: many first, which warms up the service. 64 is among them. */
  readonly connections: readonly number[];
  readonly starts: number;
  /** Before memory at rest is read. */
  readonly restMs: number;
  readonly warmUpRequests: number;
  /** Of the log that is verified and queried. */
  readonly logEntries: number;
  readonly verifications: number;
  readonly queries: number;
  readonly decisions: number;
  readonly curves: {
    readonly seconds: number;
    readonly credentials: readonly number[];
    readonly policies: readonly number[];
    readonly agents: readonly number[];
    readonly entries: readonly number[];
  };
}

const FULL: Plan = {
  name: 'full',
  minutes: 20,
  rounds: 7,
  seconds: 2.5,
  halfSeconds: 3,
  connections: [64, 256, 16, 1],
  starts: 5,
  restMs: 2000,
  warmUpRequests: 20_000,
  logEntries: 1_000_000,
  verifications: 5,
  queries: 40,
  decisions: 200_000,
  curves: {
    seconds: 1.5,
    credentials: [1000, 10_000, 100_000, 1_000_000],
    policies: [10, 100, 1000, 10_000],
    agents: [1, 10, 100, 1000, 10_000],
    entries: [10_000, 100_000, 1_000_000, 10_000_000],
  },
};

const QUICK: Plan = {
  ...FULL,
  name: 'quick',
  minutes: 1,
  rounds: 5,
  seconds: 0.3,
  halfSeconds: 0.5,
  starts: 3,
  restMs: 1500,
  warmUpRequests: 6000,
  logEntries: 200_000,
  queries: 10,
  decisions: 20_000,
};

const TRIAL: Plan = {
  ...QUICK,
  name: 'trial',
  seconds: 0.1,
  halfSeconds: 0.2,
  starts: 1,
  restMs: 100,
  warmUpRequests: 1000,
  logEntries: 30_000,
  verifications: 2,
  queries: 3,
  decisions: 5000,
  curves: {
    seconds: 0.1,
    credentials: [100, 1000],
    policies: [10, 100],
    agents: [1, 10],
    entries: [10_000, 30_000],
  },
};

export const PLANS: Readonly<Record<Plan['name'], Plan>> = { full: FULL, quick: QUICK, trial: TRIAL };
