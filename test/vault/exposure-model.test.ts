// The exposure of each version is exact, whatever happened and was swept. It is compared with a list of every act.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readExposures } from '../../src/vault/exposure/exposure.ts';
import { panic } from '../../src/vault/exposure/panic.ts';
import { createPolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { type Scope, withScope } from '../kit/directory.ts';
import { runs } from '../kit/property.ts';
import { scaled } from '../kit/scale.ts';
import { History } from './exposure-history.ts';
import { type Expected, type Step, toExpected } from './exposure-model.ts';
import { admin, CONNECTED, type OpenedVault, openVault } from './fixture.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/**
 * Histories that are played at the same time in one vault, in one batch a step. WHY a vault for each run: reads of one
 * that keeps growing would take most of the time.
 */
const TOGETHER = scaled(40, 75);
/** 40 histories in `npm test`, 3,000 in `npm run test:weekly`. */
const RUNS = runs(1, 40);

const index = fc.nat({ max: 1 });
const which = fc.nat({ max: 9 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('store' as const), path: index }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('targets' as const), path: index }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), path: index }) },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('retrieve' as const), agent: index, path: index, isOld: fc.boolean() }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('use' as const), agent: index, path: index, ends: fc.boolean() }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('token' as const), agent: index, path: index }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('useToken' as const), which }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('renew' as const, 'revoke' as const), which }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('revokeAll' as const, 'panic' as const, 'register' as const),
      agent: index,
    }),
  },
);
/** The pause between two steps of all histories. */
const pause = fc.record({
  waitMs: fc.constantFrom(2, 2, 2, HOUR_MS, DAY_MS, 8 * DAY_MS),
  sweeps: fc.boolean(),
  panics: fc.nat({ max: 19 }).map((n) => n === 0),
  compares: fc.nat({ max: 5 }).map((n) => n === 0),
});
type Round = readonly [steps: readonly Step[], pause: typeof pause extends fc.Arbitrary<infer T> ? T : never];
const rounds: fc.Arbitrary<readonly Round[]> = fc.array(
  fc.tuple(fc.array(step, { minLength: TOGETHER, maxLength: TOGETHER }), pause),
  {
    minLength: 10,
    maxLength: 20,
  },
);

const sorted = (versions: readonly Expected[]) =>
  versions.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

async function assertExact(vault: OpenedVault, history: History, now: number): Promise<void> {
  for (const path of history.paths) {
    const found = await readExposures(vault.store, { path, agentName: null }, now, CONNECTED);
    assert.deepEqual(sorted(toExpected(found)), sorted(history.expected({ path })), path);
  }
  for (const agent of history.agents) {
    const found = await readExposures(vault.store, { path: null, agentName: agent }, now, CONNECTED);
    assert.deepEqual(sorted(toExpected(found)), sorted(history.expected({ agent })), agent);
  }
}

async function sweepAll(vault: OpenedVault, now: number): Promise<void> {
  while (!(await vault.real.sweep(now, 500)).isDone);
}

test('exposures equal a list of every retrieval and use, over random histories with panics and sweeps', async () => {
  const property = fc.asyncProperty(rounds, (steps) => withScope((scope) => play(scope, steps)));
  // WHY no shrinking: each try plays a whole history, and the seed repeats the failure.
  await fc.assert(property, { ...RUNS, endOnFailure: true });
});

/** Plays histories together in a new vault, one step of each at a time. */
async function play(scope: Scope, steps: readonly Round[]): Promise<void> {
  let now = Date.UTC(2026, 0, 1);
  const time = { wall: () => now, monotonic: () => now };
  // No version is removed: a history retrieves the first one too.
  const vault = await openVault(scope, { time, settings: { versionsKept: 20 } });
  const policy = Policy.parse({
    name: 'all',
    principal: 'agent:*',
    resources: ['*'],
    actions: ['retrieve', 'use'],
    max_ttl: 30 * 24 * 3600,
  });
  await vault.ledger.submit(createPolicy.operation(admin(), policy));
  const histories = Array.from({ length: TOGETHER }, (_, at) => new History(vault, `h${at}`, () => now));
  for (const [each, { waitMs, sweeps, panics, compares }] of steps) {
    await Promise.all(histories.map((history, at) => playStep(history, each[at])));
    now += waitMs;
    if (panics) {
      const holdings = histories.map((history) => history.holdings(null));
      const sum = (pick: (held: (typeof holdings)[number]) => number) =>
        holdings.reduce((total, held) => total + pick(held), 0);
      const { leases, sessions } = await panic(vault, admin(), null, CONNECTED);
      assert.deepEqual(
        { leases, sessions },
        { leases: sum((held) => held.leases), sessions: sum((held) => held.sessions) },
      );
      for (const history of histories) history.panicked(null);
      now += 2;
    }
    if (sweeps) await sweepAll(vault, now);
    if (compares) await Promise.all(histories.map((history) => assertExact(vault, history, now)));
  }
  await Promise.all(histories.map((history) => assertExact(vault, history, now)));
  assert.deepEqual(vault.failures, []);
}

async function playStep(history: History, step: Step | undefined): Promise<void> {
  if (step === undefined) return;
  const agent = step.kind === 'panic' ? history.agents[step.agent] : undefined;
  const holdings = agent === undefined ? null : history.holdings(agent);
  const ended = await history.play(step);
  if (ended === null || agent === undefined) return;
  assert.deepEqual({ leases: ended.leases, sessions: ended.sessions }, holdings);
  const seen = history.expected({ agent }).filter(({ seenBy }) => seenBy.length > 0);
  assert.deepEqual(sorted(toExpected(ended.rotate)), sorted(seen));
}
