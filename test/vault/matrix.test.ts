// The matrix decides in slices, and its reasons have a limit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentName, parseAgentName } from '../../src/core/names.ts';
import { type CredentialPath, parsePath } from '../../src/core/path.ts';
import { decideCells } from '../../src/vault/overview/matrix.ts';
import { decide, explain } from '../../src/vault/policies/decision.ts';
import { ACTIONS, Policy } from '../../src/vault/policies/policy.ts';
import { PolicyIndex } from '../../src/vault/policies/policy-index.ts';

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
