// Approvals against a model: what passes is what people allowed, and nothing else. SOURCE: docs/approvals.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { putRow, removeRow } from '../../../src/core/change.ts';
import type { AgentId, OperatorName } from '../../../src/core/names.ts';
import type { ApprovalId } from '../../../src/vault/approvals/approval.ts';
import type { Role } from '../../../src/vault/operators/operator.ts';
import { combineRules } from '../../../src/vault/policies/approval-rule.ts';
import { Policy, type PolicyInput } from '../../../src/vault/policies/policy.ts';
import { runs } from '../../kit/property.ts';
import { Model, type ModelTerms } from './model.ts';
import { AGENTS, type Asked, agentContext, OPERATORS, operatorContext, operatorOf, World } from './world.ts';

const TERMS: fc.Arbitrary<ModelTerms> = fc.record({
  each: fc.constantFrom('request', 'endpoint', 'host'),
  scope: fc.constantFrom('once', 'session', '2 uses', '3 uses', '90 seconds', '400 seconds'),
  quorum: fc.constantFrom(1, 1, 1, 2, 3),
  timeout: fc.constantFrom(60, 300),
});
const ASKED: fc.Arbitrary<Asked> = fc.record({
  agent: fc.constantFrom('bot', 'bot', 'bot', ...AGENTS),
  session: fc.constantFrom(0, 0, 1),
  method: fc.constantFrom('GET', 'POST', 'POST', 'POST', 'POST'),
  url: fc.constantFrom(
    ...Array.from({ length: 5 }, () => 'https://api.openai.com/v1/a'),
    'https://api.openai.com/v1/a?q=1',
    'https://api.openai.com/v1/b',
    'https://eu.openai.com/v1/a',
  ),
  body: fc.constantFrom('', '', '', '', '{"a":1}'),
});

type Act =
  | { readonly kind: 'ask'; readonly asked: Asked }
  | { readonly kind: 'answer'; readonly which: number; readonly operator: string; readonly isYes: boolean }
  | { readonly kind: 'withdraw'; readonly which: number; readonly byAgent: boolean }
  | { readonly kind: 'pass'; readonly seconds: number }
  | { readonly kind: 'settle'; readonly which: number }
  | { readonly kind: 'edit'; readonly terms: ModelTerms }
  | { readonly kind: 'targets' }
  | { readonly kind: 'rotate'; readonly agent: (typeof AGENTS)[number] };

const ask = fc.record({ kind: fc.constant('ask' as const), asked: ASKED });
const answer = fc.record({
  kind: fc.constant('answer' as const),
  which: fc.constantFrom(0, 0, 0, 1, 2),
  operator: fc.constantFrom(...OPERATORS),
  isYes: fc.constantFrom(true, true, true, false),
});
const ACT: fc.Arbitrary<Act> = fc.oneof(
  { weight: 20, arbitrary: ask },
  { weight: 16, arbitrary: answer },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('withdraw' as const), which: fc.nat(3), byAgent: fc.boolean() }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(1, 59, 60, 61, 301, 86_401) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('settle' as const), which: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('edit' as const), terms: TERMS }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('targets' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rotate' as const), agent: fc.constantFrom(...AGENTS) }) },
);

/** Runs the acts on both, and compares the fate of every request and of every answer. */
function compare(first: ModelTerms, acts: readonly Act[]): number {
  const world = new World(OPERATORS.map((name) => [name, 'approver']));
  const model = new Model();
  const ids: ApprovalId[] = [];
  let terms = first;
  const editions = { policy: 0, targets: 0, bot: 1, other: 1 };
  const editionOf = (agent: (typeof AGENTS)[number]) => `${editions.policy} ${editions.targets % 2} ${editions[agent]}`;
  // Targets that are restored leave what was approved in force.
  const writePolicy = (): void => world.policy('p', { for: 'use', ...terms }, 300 + editions.policy);
  const writeTargets = (): void => world.targets(['GET', 'POST', ...(editions.targets % 2 === 1 ? ['PUT'] : [])]);
  writePolicy();
  writeTargets();
  let passed = 0;
  for (const act of acts) {
    if (act.kind === 'ask') {
      const expected = model.ask(act.asked, editionOf(act.asked.agent), terms, world.now, OPERATORS.length);
      const { fate, id } = world.ask(act.asked);
      assert.equal(fate, expected, JSON.stringify(act.asked));
      if (model.cases.length > ids.length) ids.push(id ?? assert.fail('a new request has no id'));
      if (fate === 'passed') passed += 1;
    }
    if (act.kind === 'pass') world.pass(act.seconds * 1000);
    if (act.kind === 'edit') {
      terms = act.terms;
      editions.policy += 1;
      writePolicy();
    }
    if (act.kind === 'targets') {
      editions.targets += 1;
      writeTargets();
    }
    if (act.kind === 'rotate') {
      editions[act.agent] += 1;
      world.rotate(act.agent, `key ${editions[act.agent]}`);
    }
    if (!('which' in act)) continue;
    const one = model.cases.at(-1 - act.which);
    const id = one === undefined ? undefined : ids[one.number];
    if (one === undefined || id === undefined) continue;
    const edition = editionOf(one.asked.agent);
    if (act.kind === 'answer') {
      const expected = model.answer(one, act.operator, act.isYes, edition, world.now);
      assert.equal(world.answer(act.operator, id, act.isYes) === 'ok', expected);
    }
    if (act.kind === 'withdraw') {
      const who = act.byAgent ? agentContext(one.asked.agent) : operatorContext('alice');
      assert.equal(world.withdraw(who, id) === 'ok', model.withdraw(one, world.now));
    }
    // What the service records later is what the time and the comparison decide already, but for its notice.
    if (act.kind === 'settle' && one.edition === edition) world.settle(id);
  }
  return passed;
}

test('scopes, quorums, ends and voids equal the model over random sequences', () => {
  let passed = 0;
  const acts = fc.array(ACT, { minLength: 10, maxLength: 40, size: 'max' });
  // Few requests pass in some of the random sequences.
  while (passed <= 100) {
    fc.assert(
      fc.property(TERMS, acts, (terms, done) => {
        passed += compare(terms, done);
      }),
      runs(200, 10_000),
    );
  }
});

const REQUEST: Asked = {
  agent: 'bot',
  session: 0,
  method: 'POST',
  url: 'https://api.openai.com/v1/a?q=1',
  body: '{"a":1}',
};

/** A world with one pending request. */
function pendingIn(world: World, rule: Partial<ModelTerms> = {}): ApprovalId {
  world.policy('p', { for: 'use', ...rule });
  world.targets(['GET', 'POST']);
  const { fate, id } = world.ask(REQUEST);
  assert.equal(fate, 'pending');
  return id ?? assert.fail('no id');
}

test('an approval passes the very request, once; any change of it asks again', () => {
  for (const change of [
    { url: 'https://api.openai.com/v1/a?q=2' },
    { url: 'https://api.openai.com/v1/b?q=1' },
    { url: 'https://eu.openai.com/v1/a?q=1' },
    { method: 'GET' as const },
    { body: '{"a":2}' },
    { agent: 'other' as const },
  ]) {
    const world = new World([['alice', 'approver']]);
    const id = pendingIn(world);
    assert.equal(world.answer('alice', id, true), 'ok');
    const changed = world.ask({ ...REQUEST, ...change });
    assert.equal(changed.fate, 'pending', JSON.stringify(change));
    assert.notEqual(changed.id, id);
    assert.equal(world.ask(REQUEST).fate, 'passed');
    assert.equal(world.ask(REQUEST).fate, 'pending');
  }
});

test('an answer needs the nonce of what was shown, and the role', () => {
  const world = new World([
    ['alice', 'approver'],
    ['vic', 'viewer'],
    ['ed', 'editor'],
    ['boss', 'admin'],
  ]);
  const id = pendingIn(world);
  assert.equal(world.answer('alice', id, true, 'another nonce'), 'INVALID_REQUEST');
  assert.equal(world.answer('vic', id, true), 'ACCESS_DENIED');
  assert.equal(world.answer('ed', id, false), 'ACCESS_DENIED');
  assert.equal(world.ask(REQUEST).fate, 'pending');
  assert.equal(world.answer('boss', id, true), 'ok');
  assert.equal(world.answer('alice', id, false), 'APPROVAL_ENDED');
  assert.equal(world.ask(REQUEST).fate, 'passed');
});

test('where two must agree, the operator that registered the agent does not count', () => {
  const world = new World(
    [
      ['alice', 'approver'],
      ['bob', 'approver'],
    ],
    'operator:alice',
  );
  world.policy('p', { for: 'use', quorum: 2 });
  world.targets(['GET', 'POST']);
  assert.deepEqual(world.ask(REQUEST), { fate: 'no approver', id: null, code: 'NO_APPROVER' });
  const three = new World(
    OPERATORS.map((name) => [name, 'approver']),
    'operator:alice',
  );
  const id = pendingIn(three, { quorum: 2 });
  assert.equal(three.answer('alice', id, true), 'ACCESS_DENIED');
  assert.equal(three.answer('bob', id, true), 'ok');
  assert.equal(three.answer('bob', id, true), 'ALREADY_EXISTS');
  assert.equal(three.ask(REQUEST).fate, 'pending');
  assert.equal(three.answer('carol', id, true), 'ok');
  assert.equal(three.ask(REQUEST).fate, 'passed');
  const single = new World([['alice', 'approver']], 'operator:alice');
  assert.equal(single.answer('alice', pendingIn(single), true), 'ok');
});

test('without operators the administrator’s token answers; once there are some, it does not make up the number', () => {
  const alone = new World([]);
  assert.equal(alone.answer('admin', pendingIn(alone), true), 'ok');
  assert.equal(alone.ask(REQUEST).fate, 'passed');
  const world = new World([['vic', 'viewer']]);
  world.policy('p', { for: 'use' });
  world.targets(['GET', 'POST']);
  assert.equal(world.ask(REQUEST).fate, 'no approver');
});

test('a request that waits learns that it was withdrawn, timed out or denied, also after a minute', () => {
  const ends: readonly (readonly [string, (world: World, id: ApprovalId) => void])[] = [
    ['withdrawn', (world, id) => void world.withdraw(operatorContext('alice'), id)],
    ['denied', (world, id) => void world.answer('alice', id, false)],
    ['timed out', (world) => world.pass(300_000)],
  ];
  for (const [fate, end] of ends) {
    const world = new World([['alice', 'approver']]);
    const id = pendingIn(world);
    end(world, id);
    assert.deepEqual([world.ask(REQUEST, id).fate, world.ask(REQUEST, id).id], [fate, id]);
    world.pass(400_000);
    assert.equal(world.ask(REQUEST).fate, 'pending', 'a later request asks again');
  }
});

test('an edit of what an approval relies on withdraws it when the service settles it', () => {
  const edits: readonly ((world: World) => void)[] = [
    (world) => world.policy('p', { for: 'use', quorum: 1 }, 299),
    (world) => world.policy('q', { for: 'use', timeout: 200 }),
    (world) => world.targets(['POST']),
    (world) => world.rotate('bot', 'key 2'),
    (world) => world.state.apply(removeRow('agent', { id: 'id of bot' as never, name: 'bot' as never })),
  ];
  for (const [index, edit] of edits.entries()) {
    for (const isApproved of [false, true]) {
      const world = new World([['alice', 'approver']]);
      const id = pendingIn(world);
      if (isApproved) assert.equal(world.answer('alice', id, true), 'ok');
      world.settle(id);
      assert.equal(world.approval(id)?.status, isApproved ? 'approved' : 'pending');
      edit(world);
      world.settle(id);
      assert.equal(world.approval(id)?.status, 'withdrawn', `edit ${index}`);
      if (!isApproved) assert.equal(world.answer('alice', id, true), 'APPROVAL_ENDED');
    }
  }
});

test('agents withdraw their own requests only', () => {
  const world = new World([['alice', 'approver']]);
  const id = pendingIn(world);
  assert.equal(world.withdraw(agentContext('other'), id), 'NOT_FOUND');
  assert.equal(world.withdraw(agentContext('bot', 1), id), 'ok');
  assert.equal(world.withdraw(agentContext('bot'), id), 'APPROVAL_ENDED');
  const approved = world.ask({ ...REQUEST, body: 'another' }).id ?? assert.fail('no id');
  assert.equal(world.answer('alice', approved, true), 'ok');
  assert.equal(world.withdraw(operatorContext('alice'), approved), 'ok');
  assert.equal(world.ask({ ...REQUEST, body: 'another' }).fate, 'withdrawn');
});

test('a demoted or removed operator does not answer', () => {
  const world = new World([
    ['alice', 'approver'],
    ['bob', 'approver'],
  ]);
  const id = pendingIn(world);
  world.state.apply(removeRow('operator', { id: 'id of alice' as AgentId, name: 'operator:alice' as OperatorName }));
  assert.equal(world.answer('alice', id, true), 'UNAUTHENTICATED');
  assert.equal(world.ask(REQUEST).fate, 'pending');
});

test('of several rules the strictest counts, field by field', () => {
  const policy = (name: string, approval: PolicyInput['approval']) => ({
    ...Policy.parse({ name, principal: 'agent:a', resources: ['*'], actions: ['use', 'retrieve'], approval }),
    createdAt: 0,
  });
  const a = policy('a', { for: 'use', each: 'host', scope: '400 seconds', timeout: 60 });
  const b = policy('b', { for: 'use', each: 'endpoint', scope: '5 uses', quorum: 2, timeout: 600 });
  const c = policy('c', { for: 'use', each: 'host', scope: 'session' });
  assert.equal(combineRules([policy('d', undefined)]), null);
  assert.deepEqual(combineRules([b, a]), {
    each: 'endpoint',
    uses: 5,
    seconds: 400,
    isForSession: false,
    quorum: 2,
    timeoutSeconds: 60,
    policyNames: ['a', 'b'],
  });
  assert.equal(combineRules([a, c])?.isForSession, true);
  const once = combineRules([a, policy('o', { for: 'use', timeout: 200 })]);
  assert.deepEqual([once?.each, once?.uses, once?.seconds], ['request', 1, 60]);
});

test('a rule names its field where it is not valid', () => {
  const bad: readonly (readonly [string, Record<string, unknown>])[] = [
    ['approval.for', { for: 'list' }],
    ['approval.for', { for: 'retrieve' }],
    ['approval.each', { for: 'use', each: 'day' }],
    ['approval.scope', { for: 'use', scope: 'always' }],
    ['approval.scope', { for: 'use', scope: '0 uses' }],
    ['approval.scope', { for: 'use', scope: '99999999 seconds' }],
    ['approval.quorum', { for: 'use', quorum: 0 }],
    ['approval.quorum', { for: 'use', quorum: 11 }],
    ['approval.timeout', { for: 'use', timeout: 86_401 }],
    ['approval.timeout', { for: 'use', timeout: 1.5 }],
  ];
  const parse = (actions: string[], approval: object) =>
    Policy.parse({ name: 'p', principal: 'agent:a', resources: ['*'], actions, approval });
  for (const [field, fields] of bad) {
    assert.throws(() => parse(['use', 'list'], fields), new RegExp(`^ApiError: ${field}: must be`));
  }
  for (const fields of [{ scope: 'session' }, { scope: '2 uses' }, { each: 'host' }]) {
    assert.throws(() => parse(['retrieve'], { for: 'retrieve', ...fields }), /must be left out for retrieve/);
  }
});

test('a vote of an operator that was removed, demoted or added again does not count', () => {
  const operators = OPERATORS.map((name): readonly [string, Role] => [name, 'approver']);
  const changes: readonly ((world: World) => void)[] = [
    (world) =>
      world.state.apply(
        removeRow('operator', { id: 'id of alice' as AgentId, name: 'operator:alice' as OperatorName }),
      ),
    (world) => world.state.apply({ kind: 'put' as const, resource: 'operator', row: operatorOf('alice', 'viewer') }),
    (world) => world.state.apply(putRow('operator', { ...operatorOf('alice', 'approver'), id: 'another' as AgentId })),
  ];
  for (const change of changes) {
    const world = new World(operators);
    const id = pendingIn(world, { quorum: 2 });
    assert.equal(world.answer('alice', id, true), 'ok');
    change(world);
    assert.equal(world.answer('bob', id, true), 'ok');
    assert.equal(world.ask(REQUEST).fate, 'pending');
    assert.equal(world.answer('carol', id, true), 'ok');
    assert.equal(world.ask(REQUEST).fate, 'passed');
  }
});

test('everyone who gave the agent a key is out, also after others rotated it', () => {
  const world = new World(
    OPERATORS.map((name) => [name, 'approver']),
    'operator:alice',
  );
  world.rotateBy('bot', 'key 2', 'operator:bob');
  world.policy('p', { for: 'use', quorum: 2 });
  world.targets(['GET', 'POST']);
  assert.equal(world.ask(REQUEST).fate, 'no approver');
  const voted = new World(OPERATORS.map((name) => [name, 'approver']));
  const id = pendingIn(voted, { quorum: 2 });
  assert.equal(voted.answer('alice', id, true), 'ok');
  voted.rotateBy('bot', 'key 1', 'operator:alice');
  assert.equal(voted.answer('bob', id, true), 'ok');
  assert.equal(voted.ask(REQUEST).fate, 'pending', 'the vote of alice no longer counts');
});

test('a former key that was put back in place voids what was approved', () => {
  const world = new World([['alice', 'approver']]);
  const id = pendingIn(world);
  assert.equal(world.answer('alice', id, true), 'ok');
  world.rotateBy('bot', 'key 2', 'operator:alice');
  world.rotateBy('bot', 'key 1', 'operator:alice');
  assert.equal(world.ask(REQUEST).fate, 'pending');
});

test('a request whose approval ended meanwhile is prepared again, under another id', () => {
  const world = new World([['alice', 'approver']]);
  const id = pendingIn(world);
  assert.equal(world.answer('alice', id, true), 'ok');
  world.policy('p', { for: 'use' }, 299);
  assert.equal(world.askAgain(REQUEST, id).fate, 'pending');
  assert.equal(world.askAgain(REQUEST, id).id, null, 'it needs another ask');
  assert.equal(world.approval(id)?.status, 'approved');
});
