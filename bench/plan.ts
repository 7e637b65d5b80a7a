// How much a run measures.

export interface Plan {
  readonly name: 'full' | 'quick' | 'trial';
  readonly rounds: number;
  /** Length of a round: at full load, at half load, and with the large vault. */
  readonly seconds: number;
  readonly halfLoadSeconds: number;
  readonly largeSeconds: number;
  readonly starts: number;
  /** Idle time before memory at rest is read. */
  readonly restMs: number;
  readonly warmUpRequests: number;
  readonly decisions: number;
  readonly verifications: number;
  /** Receipts and consistency proofs of a round, each. */
  readonly proofs: number;
  /** Length of the log that is verified. */
  readonly logEntries: number;
  readonly large: { readonly credentials: number; readonly policies: number; readonly entries: number };
}

const FULL: Plan = {
  name: 'full',
  rounds: 7,
  seconds: 2.5,
  halfLoadSeconds: 3,
  largeSeconds: 1.5,
  starts: 5,
  restMs: 2000,
  warmUpRequests: 20_000,
  decisions: 200_000,
  verifications: 5,
  proofs: 500,
  logEntries: 1_000_000,
  large: { credentials: 1_000_000, policies: 10_000, entries: 10_000_000 },
};

const QUICK: Plan = {
  ...FULL,
  name: 'quick',
  rounds: 5,
  seconds: 0.3,
  halfLoadSeconds: 0.5,
  starts: 3,
  restMs: 1500,
  warmUpRequests: 6000,
  decisions: 20_000,
  logEntries: 200_000,
};

const TRIAL: Plan = {
  ...QUICK,
  name: 'trial',
  rounds: 2,
  seconds: 0.1,
  halfLoadSeconds: 0.2,
  largeSeconds: 0.1,
  starts: 1,
  restMs: 100,
  warmUpRequests: 1000,
  decisions: 5000,
  verifications: 2,
  proofs: 20,
  logEntries: 30_000,
  large: { credentials: 2000, policies: 100, entries: 30_000 },
};

export const PLANS: Readonly<Record<Plan['name'], Plan>> = { full: FULL, quick: QUICK, trial: TRIAL };
