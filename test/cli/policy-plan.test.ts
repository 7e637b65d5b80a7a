// Plans: their effect on a vault, their markers, and the grants after every step.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  applyPlan,
  makePlan,
  type Plan,
  planLines,
  planRecord,
  type Step,
  widens,
} from '../../src/cli/policy/policy-plan.ts';
import { LeaseholdError } from '../../src/client/errors.ts';
import { directionOf, grantsAllOf } from '../../src/vault/policies/comparison.ts';
import { Policy, type PolicyDraft, type PolicyInput } from '../../src/vault/policies/policy.ts';
import { decidePlainly } from '../core/reference.ts';
import { runs } from '../kit/property.ts';
import { policySets, QUESTIONS } from './random-policies.ts';

const draftOf = (fields: Partial<PolicyInput> & { name: string }): PolicyDraft =>
  Policy.parse({ principal: 'agent:a', resources: ['p/*'], actions: ['retrieve'], ...fields });

type Vault = ReadonlyMap<string, PolicyDraft>;
const toVault = (drafts: readonly PolicyDraft[]): Vault => new Map(drafts.map((draft) => [draft.name, draft]));
function done(vault: Vault, step: Step): Vault {
  const after = new Map(vault);
  if (step.after === null) after.delete(step.name);
  else after.set(step.name, step.after);
  return after;
}

/** The longest lease for each query; 0 if it is denied. */
function leases(vault: Vault): number[] {
  const policies = [...vault.values()].map((draft) => ({ ...draft, createdAt: 0 }));
  return QUESTIONS.map(({ agent, action, path }) => decidePlainly(policies, agent, action, path)?.maxTtlSeconds ?? 0);
}
const isSwap = ({ before, after }: Step): boolean =>
  before !== null && after !== null && directionOf(before, after) === 'swaps';

/** The grants before, after, and between the steps. */
function moments(before: readonly PolicyDraft[], plan: Plan) {
  const vaults = [toVault(before)];
  for (const step of plan.steps) vaults.push(done(vaults.at(-1) ?? new Map(), step));
  const all = vaults.map(leases);
  return { first: all[0] ?? [], last: all.at(-1) ?? [], between: all.slice(1, -1), end: vaults.at(-1) };
}

test('an executed plan leaves the policies of the files, and without --prune those that no file names', () => {
  fc.assert(
    fc.property(policySets, policySets, fc.boolean(), (before, wanted, prunes) => {
      const plan = makePlan(wanted, before, prunes);
      const { last } = moments(before, plan);
      const kept = prunes ? [] : before.filter(({ name }) => !wanted.some((draft) => draft.name === name));
      assert.deepEqual(last, leases(toVault([...wanted, ...kept])));
      assert.deepEqual(makePlan(wanted, [...(moments(before, plan).end?.values() ?? [])], prunes).steps, []);
      assert.equal(plan.steps.length + plan.unchanged.length, wanted.length + (prunes ? before.length - common() : 0));
      function common(): number {
        return before.filter(({ name }) => wanted.some((draft) => draft.name === name)).length;
      }
    }),
    runs(25, 300),
  );
});

test('no step of a plan grants what neither the old nor the new state grants', () => {
  fc.assert(
    fc.property(policySets, policySets, (before, wanted) => {
      const { first, last, between } = moments(before, makePlan(wanted, before, true));
      for (const moment of between) {
        for (const [at, ttl] of moment.entries()) if (ttl > 0) assert.ok((first[at] ?? 0) > 0 || (last[at] ?? 0) > 0);
      }
    }),
    runs(25, 300),
  );
});

test('without swaps, no step lengthens a lease beyond both states or denies what both allow', () => {
  let seen = 0;
  // Some of the random plans have no moments.
  while (seen <= 3) {
    fc.assert(
      fc.property(policySets, policySets, (before, wanted) => {
        const plan = makePlan(wanted, before, true);
        fc.pre(!plan.steps.some(isSwap));
        if (plan.steps.length > 1) seen++;
        const { first, last, between } = moments(before, plan);
        for (const moment of between) {
          for (const [at, ttl] of moment.entries()) {
            const [was = 0, is = 0] = [first[at], last[at]];
            assert.ok(ttl <= Math.max(was, is), `${ttl} s, of ${was} before and ${is} after`);
            if (was > 0 && is > 0) assert.ok(ttl > 0, 'denied during the plan');
          }
        }
      }),
      runs(25, 300),
    );
  }
});

test('a renamed policy exists under its new name before the old one is deleted', () => {
  const before = [draftOf({ name: 'old', max_ttl: 60 }), draftOf({ name: 'wide', resources: ['*'], max_ttl: 3600 })];
  const wanted = [draftOf({ name: 'new', max_ttl: 60 }), before[1] as PolicyDraft];
  assert.deepEqual(
    makePlan(wanted, before, true).steps.map(({ change, name }) => [change, name]),
    [
      ['create', 'new'],
      ['delete', 'old'],
    ],
  );
});

test('a replacement is marked exactly when it grants more', () => {
  fc.assert(
    fc.property(policySets, (drafts) => {
      const [before, other] = drafts;
      if (before === undefined || other === undefined) return;
      const [step] = makePlan([{ ...other, name: before.name }], [before], false).steps;
      const was = leases(toVault([before]));
      const is = leases(toVault([other]));
      const givesMore = is.some((ttl, at) => ttl > (was[at] ?? 0));
      if (givesMore) assert.ok(step !== undefined && widens(step), JSON.stringify([before, other]));
    }),
    runs(25, 500),
  );
  const before = draftOf({ name: 'n', resources: ['p/*', 'q'], actions: ['retrieve', 'list'], max_ttl: 60 });
  const marked = (fields: Partial<PolicyInput>): string[] =>
    makePlan([draftOf({ ...Policy.toInput(before), ...fields })], [before], false).steps.flatMap((step) =>
      step.change === 'replace' ? step.fields.map(({ field, widens: wider }) => `${field}${wider ? '+' : ''}`) : [],
    );
  assert.deepEqual(marked({ resources: ['p/x', 'p/y/*'] }), ['resources']);
  assert.deepEqual(marked({ resources: ['p', 'q'] }), ['resources+']);
  assert.deepEqual(marked({ actions: ['list'], max_ttl: 61 }), ['actions', 'max_ttl+']);
  assert.deepEqual(marked({ principal: 'agent:*' }), ['principal+']);
  assert.deepEqual(marked({ principal: 'agent:ab' }), ['principal+'], 'another agent');
  assert.deepEqual(marked({ resources: ['q', 'p/*'], actions: ['list', 'retrieve'] }), [], 'an order decides nothing');
});

test('limits are compared, marked and shown', () => {
  const limited = draftOf({ name: 'n', actions: ['use'], limits: { uses_per_hour: 10, concurrent: 2 } });
  const replaced = (limits: PolicyInput['limits'], from = limited): string[] =>
    planLines(makePlan([draftOf({ name: 'n', actions: ['use'], limits })], [from], false)).slice(0, -1);
  const was = 'uses_per_hour 10, concurrent 2';
  assert.deepEqual(replaced({ concurrent: 2, uses_per_hour: 10 }), []);
  assert.deepEqual(replaced({ uses_per_hour: 9, concurrent: 2 }), [
    '~ replace n',
    `    limits: ${was} → uses_per_hour 9, concurrent 2`,
  ]);
  assert.deepEqual(replaced({ uses_per_hour: 10, concurrent: 2, bytes_per_hour: 1 }).length, 2);
  assert.deepEqual(replaced({ uses_per_hour: 11, concurrent: 1 }), [
    '~ replace n  WIDENS ACCESS',
    `    limits: ${was} → uses_per_hour 11, concurrent 1  (wider)`,
  ]);
  assert.deepEqual(replaced({ uses_per_hour: 10 })[0], '~ replace n  WIDENS ACCESS');
  assert.deepEqual(replaced(undefined)[1], `    limits: ${was} → none  (wider)`);
  assert.deepEqual(replaced({ concurrent: 2 }, draftOf({ name: 'n', actions: ['use'] })), [
    '~ replace n',
    '    limits: none → concurrent 2',
  ]);
  assert.deepEqual(planLines(makePlan([limited], [], false)).slice(1, 3), [
    '    agent:a may use p/* for up to 300 s',
    `    limits: ${was}`,
  ]);
});

test('a plan shows old and new to people, and is one record for programs', () => {
  const before = [draftOf({ name: 'b', max_ttl: 60 }), draftOf({ name: 'c' }), draftOf({ name: 'd' })];
  const wanted = [draftOf({ name: 'a' }), draftOf({ name: 'b', max_ttl: 90 }), draftOf({ name: 'c' })];
  assert.deepEqual(planLines(makePlan(wanted, before, true)), [
    '+ create a',
    '    agent:a may retrieve p/* for up to 300 s',
    '~ replace b  WIDENS ACCESS',
    '    max_ttl: 60 → 90  (wider)',
    '- delete d',
    '    agent:a may retrieve p/* for up to 300 s',
    '1 to create, 1 to replace (1 widening access), 1 to delete, 1 unchanged',
  ]);
  const kept = makePlan(wanted, before, false);
  assert.match(planLines(kept).at(-1) ?? '', /left alone without --prune: d$/);
  assert.deepEqual(planRecord(kept, false), {
    applied: false,
    steps: [
      { name: 'a', change: 'create', widens: false, fields: [] },
      { name: 'b', change: 'replace', widens: true, fields: [{ field: 'max_ttl', from: 60, to: 90, widens: true }] },
    ],
    unchanged: ['c'],
    kept: ['d'],
  });
});

test('a failed plan reports its progress and stops; a policy that is already deleted is not a failure', async () => {
  const before = [draftOf({ name: 'x' })];
  const plan = makePlan(
    ['a', 'b', 'c'].map((name) => draftOf({ name })),
    before,
    true,
  );
  const calls: string[] = [];
  const told: string[] = [];
  const way = {
    signal: new AbortController().signal,
    attempt: (_step: Step, work: Promise<void>) => work,
    done: ({ name }: Step) => void told.push(name),
    stopped: (some: number, all: number) => void told.push(`${some} of ${all}`),
  };
  const policies = {
    put: async (name: string) => {
      calls.push(name);
      if (name === 'b') throw new LeaseholdError('UNREACHABLE', 'away');
      return toListedNothing();
    },
    readTagged: async (): Promise<never> => {
      throw new LeaseholdError('NOT_FOUND', 'gone');
    },
    delete: async () => assert.fail('a policy that is gone is not deleted'),
  };
  await assert.rejects(applyPlan(plan, policies, way), { code: 'UNREACHABLE' });
  assert.deepEqual(
    [calls, told],
    [
      ['a', 'b'],
      ['a', '1 of 4'],
    ],
  );
  told.length = 0;
  await applyPlan(makePlan([], before, true), policies, way);
  assert.deepEqual(told, ['x']);
  function toListedNothing() {
    return { name: '', principal: '', resources: [], actions: [], max_ttl: 1, created_at: '' };
  }
});

test('a policy that covers another grants every query that the other grants', () => {
  fc.assert(
    fc.property(policySets, ([a, b]) => {
      if (a === undefined || b === undefined) return;
      const [one, two] = [leases(toVault([a])), leases(toVault([b]))];
      if (grantsAllOf(a, b)) assert.ok(two.every((ttl, at) => ttl === 0 || (one[at] ?? 0) > 0));
    }),
    runs(25, 500),
  );
});
