// The overview: searches, levels of the tree, the access matrix and advisories. SOURCE: docs/api.md, "Overview".

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentName, parseAgentName } from '../../src/core/names.ts';
import { type CredentialPath, parsePath } from '../../src/core/path.ts';
import { readLeaseSigns } from '../../src/store/advisory-reads.ts';
import { searchCredentials } from '../../src/store/credential-lists.ts';
import type { Statement } from '../../src/store/statement.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { storeCredential } from '../../src/vault/credentials/credentials.ts';
import { Advisories } from '../../src/vault/overview/advisories.ts';
import { readTree } from '../../src/vault/overview/credential-tree.ts';
import { decideCells } from '../../src/vault/overview/matrix.ts';
import { search } from '../../src/vault/overview/search.ts';
import { explain } from '../../src/vault/policies/decision-text.ts';
import { ACTIONS, Policy } from '../../src/vault/policies/policy.ts';
import { decide, PolicyIndex } from '../../src/vault/policies/policy-index.ts';
import { admin, CONNECTED, inFrontOfReads, openVault, put, settle, toPath } from './fixture.ts';

test('equal names and those that begin with the text come first, also if others have used up the limit', async (t) => {
  const vault = await openVault(t, {
    // Simulates 3,000 paths with the text that come first.
    inFront: (store) =>
      inFrontOfReads(store, searchCredentials, async (_, procedure) => {
        const [from] = (procedure.next().value as Statement).values;
        const rows = Array.from({ length: 1000 }, (_row, number) => ({
          path: toPath(`a${from}/${number}/stripe-key`),
          description: '',
        }));
        return { rows, next: `a${from}` };
      }),
  });
  const near = ['strip', 'stripd', 'stripf', 'Stripe', 'STRIPE/a'];
  for (const path of ['stripe', 'stripe/live', 'stripe-test', 'stripe~', ...near]) await put(vault, path);
  const namesOf = async (text: string, limit: number) => {
    const { isComplete, results } = await search(vault, admin(), text, limit, CONNECTED);
    assert.equal(isComplete, false);
    return results.map(({ name }) => name);
  };
  const beginning = ['stripe', 'stripe-test', 'stripe/live', 'stripe~'];
  assert.deepEqual((await namesOf('stripe', 50)).slice(0, 5), [...beginning, 'a/0/stripe-key']);
  assert.deepEqual(await namesOf('stripe', 2), beginning.slice(0, 2));
  assert.deepEqual((await namesOf('Stripe', 6)).slice(0, 5), ['Stripe', ...beginning]);
  assert.deepEqual((await namesOf('stripe/l', 1))[0], 'stripe/live');
  // No path has such characters, and a database may not take them.
  for (const none of ['stripe ü', 'stripe\0', '\ud800']) await search(vault, admin(), none, 1, CONNECTED);
});

const LARGE = 700;

test('large directories are counted completely, or not at all', async (t) => {
  const vault = await openVault(t);
  const paths = [
    'a',
    ...Array.from({ length: LARGE }, (_, number) => `b/${number % 3}/${number}`),
    'b',
    'b-c/d',
    'c/e',
    'd',
  ];
  const store = (path: string) => {
    const request = { path: path as CredentialPath, value: new Secret('v'), onlyIfNew: true };
    return storeCredential(vault, admin(), { ...request, type: null, description: null });
  };
  // A busy database may take longer for one commit of all of them than the store waits.
  for (let from = 0; from < paths.length; from += 50) await Promise.all(paths.slice(from, from + 50).map(store));
  const read = async (prefix: string, limit: number, after: string | null, maxCounted?: number) => {
    const request = { prefix: prefix as CredentialPath, limit, after };
    const { entries, next } = await readTree(vault, admin(), request, CONNECTED, maxCounted);
    return [entries.map(({ path, directory }) => [path, directory === null ? 'here' : directory.credentials]), next];
  };
  const first = [
    ['a', 'here'],
    ['b', 'here'],
    ['b-c', 1],
    ['b', LARGE],
    ['c', 1],
    ['d', 'here'],
  ];
  assert.deepEqual(await read('', 100, null), [first, null]);
  assert.deepEqual(await read('', 4, null), [first.slice(0, 4), 'b/']);
  assert.deepEqual(await read('', 4, 'b/'), [first.slice(4), null]);
  const thirds = [
    ['b/0', Math.ceil(LARGE / 3)],
    ['b/1', Math.floor(LARGE / 3)],
    ['b/2', Math.floor(LARGE / 3)],
  ];
  assert.deepEqual(await read('b', 100, null), [thirds, null]);
  assert.deepEqual(await read('b', 1, 'b/0/'), [[thirds[1]], 'b/1/']);
  // A fast step may have counted the directory before the limit is checked.
  const [bounded, next] = await read('', 100, null, 1);
  const uncounted = first.map(([path, count]) => [path, path === 'b' && count === LARGE ? null : count]);
  assert.ok([uncounted, first].some((wanted) => JSON.stringify(bounded) === JSON.stringify(wanted)));
  assert.equal(next, null);
});

const agentsOf = (count: number): AgentName[] =>
  Array.from({ length: count }, (_, number) => parseAgentName(`agent-${number}`));
const pathsOf = (count: number, middle: string): CredentialPath[] =>
  Array.from({ length: count }, (_, number) => parsePath(`team-${number}/${middle}/key`));

/** Each decision takes longer than a slice. */
class SlowPolicies extends PolicyIndex {
  readonly turns: number[] = [];
  turn = 0;

  override findDecidingPolicy(...question: Parameters<PolicyIndex['findDecidingPolicy']>) {
    this.turns.push(this.turn);
    const endsAt = performance.now() + 4;
    while (performance.now() < endsAt);
    return super.findDecidingPolicy(...question);
  }
}

test('decisions that take longer than a slice have a turn of the event loop each', async () => {
  const policies = new SlowPolicies();
  let isDone = false;
  const count = (): void => {
    policies.turn += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await decideCells(() => policies, agentsOf(1), pathsOf(2, 'x'));
  isDone = true;
  assert.equal(policies.turns.length, 2 * ACTIONS.length);
  assert.equal(new Set(policies.turns).size, policies.turns.length);
});

test('reasons beyond 1 MiB are brief, and every decision is right', async () => {
  const [agents, paths] = [agentsOf(50), pathsOf(100, Array(4).fill('x'.repeat(100)).join('/'))];
  const policies = new PolicyIndex();
  for (const [row, agent] of agents.entries()) {
    for (const [column, path] of paths.entries()) {
      const fields = { principal: `agent:${agent}`, resources: [path], actions: ['retrieve', 'use', 'list'] };
      policies.put({ ...Policy.parse({ ...fields, name: `policy-${row}-${column}` }), createdAt: 0 });
    }
  }
  policies.remove(
    Policy.parse({ name: 'policy-49-99', principal: 'agent:a', resources: ['a'], actions: ['use'] }).name,
  );
  const { decisions, cells } = await decideCells(() => policies, agents, paths);
  assert.ok(JSON.stringify(decisions).length < 4 * 1024 * 1024);
  let brief = 0;
  for (const [row, agent] of agents.entries()) {
    for (const [column, path] of paths.entries()) {
      for (const [index, action] of ACTIONS.entries()) {
        const decision = decide(policies, agent, action, path);
        const shown = decisions[cells[row]?.[column]?.[index] ?? -1] ?? assert.fail('no decision');
        assert.equal(shown.allowed, decision.allowed);
        assert.equal(shown.policyName, decision.allowed ? decision.policyName : null);
        const whole = explain(decision, { policies, agent, isRegistered: true, action, path });
        if (shown.reason === whole) continue;
        brief += 1;
        assert.ok(shown.reason.length < 100, shown.reason);
        assert.ok(whole.startsWith(shown.reason.slice(0, -1)), shown.reason);
      }
    }
  }
  assert.ok(brief > 10_000, String(brief));
  const lengths = decisions.map(({ reason }) => reason.length).filter((length) => length > 100);
  assert.ok(lengths.reduce((sum, length) => sum + length) < 1024 * 1024 + 1000);
});

test('callers share a search, it ends when all have left, and one of many steps is not repeated at once', async (t) => {
  const { real, clock } = await openVault(t);
  let steps = 0;
  let isEndless = false;
  let further = 0;
  const store = inFrontOfReads(real, readLeaseSigns, async (read) => {
    steps += 1;
    further -= 1;
    return isEndless || further >= 0 ? { ending: [], credentialIds: [], next: 1 } : read();
  });
  const timer = { now: () => 0 };
  const advisories = new Advisories({ store, clock }, timer);
  await Promise.all(Array.from({ length: 50 }, () => advisories.read(CONNECTED)));
  assert.equal(steps, 2);

  isEndless = true;
  const leaving = new AbortController();
  const searches = Array.from({ length: 50 }, () => advisories.read(leaving.signal));
  await settle();
  leaving.abort(new Error('gone'));
  for (const search of searches) await assert.rejects(search, /gone/);
  await settle();
  const taken = steps;
  await settle();
  assert.equal(steps, taken);

  isEndless = false;
  // However long a short search takes, it is repeated.
  let now = 1;
  timer.now = () => (now += 60);
  assert.notEqual(await advisories.read(CONNECTED), await advisories.read(CONNECTED));
  further = 10;
  const long = await advisories.read(CONNECTED);
  timer.now = () => now + 1000;
  assert.equal(await advisories.read(CONNECTED), long);
  timer.now = () => now + 1200;
  assert.notEqual(await advisories.read(CONNECTED), long);
});
