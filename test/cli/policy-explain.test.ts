// Explanations and expectations of access, compared with the decision and with an independent loop over a list.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  consideredRows,
  explainAccess,
  localSimulator,
  remedyLines,
  verdictLines,
} from '../../src/cli/policy/access-query.ts';
import { readExpectations, testExpectations, toRow } from '../../src/cli/policy/expectations.ts';
import { Policy, type PolicyDraft } from '../../src/vault/policies/policy.ts';
import { decidePlainly, patternCovers, principalNames } from '../core/reference.ts';
import { runs } from '../kit/property.ts';
import { type Asked, policySets, QUESTIONS, toListed } from './random-policies.ts';

const dated = (drafts: readonly PolicyDraft[]) => drafts.map((draft) => ({ ...draft, createdAt: 0 }));
const explained = async (drafts: readonly PolicyDraft[], question: Asked) =>
  explainAccess(question, drafts.map(toListed), await localSimulator(drafts)(question));

/** The policy that the command would put, read from its words as they are typed. */
function granted(line: string): PolicyDraft {
  const words = line.split(' ').map((word) => word.replaceAll("'", ''));
  const [program, noun, verb, name = '', ...flags] = words;
  assert.deepEqual([program, noun, verb], ['leasehold', 'policy', 'put']);
  const given = new Map<string, string>();
  for (let at = 0; at < flags.length; at++) {
    const [flag = '', ...joined] = (flags[at] ?? '').split('=');
    given.set(flag, joined.length > 0 ? joined.join('=') : (flags[++at] ?? ''));
  }
  return Policy.parse({
    name,
    principal: given.get('--principal') ?? '',
    resources: [given.get('--resource') ?? ''],
    actions: [given.get('--action') ?? ''],
    max_ttl: Number(given.get('--max-ttl')),
  });
}

test('an explanation agrees with the decision, and names the first failed test of every policy', async () => {
  await fc.assert(
    fc.asyncProperty(policySets, async (drafts) => {
      for (const question of QUESTIONS) {
        const { agent, action, path } = question;
        const decider = decidePlainly(dated(drafts), agent, action, path);
        const explanation = await explained(drafts, question);
        assert.equal(explanation.allowed, decider !== null);
        const considered = explanation.policies ?? [];
        assert.deepEqual(considered.map(({ name }) => name).sort(), drafts.map(({ name }) => name).sort());
        assert.deepEqual(
          considered.filter(({ decides }) => decides).map(({ name }) => name),
          decider === null ? [] : [decider.name],
        );
        for (const { name, failed } of considered) {
          const policy = drafts.find((draft) => draft.name === name);
          assert.ok(policy);
          const expected = !principalNames(policy.principal, agent)
            ? 'principal'
            : !policy.actions.includes(action)
              ? 'action'
              : !policy.resources.some((pattern) => patternCovers(pattern, path))
                ? 'pattern'
                : null;
          assert.equal(failed, expected, `${name}: ${agent} ${action} ${path}`);
        }
        // The deciding policy is first, and matching policies precede the others.
        if (decider !== null) assert.equal(considered[0]?.name, decider.name);
        const places = considered.map(({ failed }) => [null, 'pattern', 'action', 'principal'].indexOf(failed));
        assert.deepEqual(places, [...places].sort());
      }
    }),
    runs(10, 60),
  );
});

test('the suggested command grants the request and nothing else, and replaces no policy', async () => {
  await fc.assert(
    fc.asyncProperty(policySets, fc.constantFrom(...QUESTIONS), async (drafts, question) => {
      const explanation = await explained(drafts, question);
      if (explanation.allowed) {
        assert.equal(explanation.grant, null);
        return;
      }
      const policy = granted(explanation.grant ?? assert.fail('the command is missing'));
      assert.equal(
        drafts.some(({ name }) => name === policy.name),
        false,
        'the name is free',
      );
      for (const other of QUESTIONS) {
        const before = await localSimulator(drafts)(other);
        const after = await localSimulator([...drafts, policy])(other);
        if (other === question) assert.equal(after.allowed, true);
        else assert.deepEqual([after.allowed, after.lease_ttl], [before.allowed, before.lease_ttl]);
      }
    }),
    runs(10, 100),
  );
});

test('if only the path does not match, the nearest pattern is named with its policy', async () => {
  const drafts = [
    Policy.parse({ name: 'far', principal: 'agent:*', resources: ['dev/*'], actions: ['retrieve'] }),
    Policy.parse({
      name: 'near',
      principal: 'agent:ci',
      resources: ['prod/zzz', 'prod/web/*', 'x'],
      actions: ['retrieve', 'list'],
    }),
    Policy.parse({ name: 'other', principal: 'agent:else', resources: ['prod/db'], actions: ['retrieve'] }),
    Policy.parse({ name: 'lists', principal: 'agent:ci', resources: ['*'], actions: ['list'] }),
  ];
  const question = { agent: 'ci', action: 'retrieve', path: 'prod/db', request: null } as Asked;
  const explanation = await explained(drafts, question);
  assert.equal(explanation.nearest_pattern, 'prod/web/*');
  assert.deepEqual(
    explanation.policies?.map(({ name, failed, pattern }) => [name, failed, pattern]),
    [
      ['far', 'pattern', 'dev/*'],
      ['near', 'pattern', 'prod/web/*'],
      ['lists', 'action', null],
      ['other', 'principal', null],
    ],
  );
  assert.match(explanation.reason, /nearest pattern is prod\/web\/\*/, 'the server says the same');
  const rows = consideredRows(explanation.policies ?? [], 'retrieve', false);
  assert.deepEqual(
    rows.map(({ policy, result }) => `${policy}: ${result}`),
    [
      'far: fails pattern: the nearest is dev/*',
      'near: fails pattern: the nearest is prod/web/*',
      'lists: fails action: does not grant retrieve',
    ],
  );
  assert.equal(consideredRows(explanation.policies ?? [], 'retrieve', true).length, 4);
  const way = remedyLines(explanation, false);
  assert.match(way[0] ?? '', /^1 more policy does not name ci/);
  assert.equal(
    way.at(-1),
    '  leasehold policy put ci-retrieve --principal agent:ci --resource prod/db --action retrieve --max-ttl 300',
  );
});

test('a caller that may not list policies receives the reason and is told who can see more', () => {
  const question = { agent: 'ci', action: 'retrieve', path: 'prod/db', request: null } as Asked;
  const denied = { allowed: false, policy_name: null, lease_ttl: null, reason: 'No policy names this agent.' };
  const explanation = explainAccess(question, null, denied);
  assert.deepEqual([explanation.policies, explanation.grant], [null, null]);
  assert.deepEqual(verdictLines(explanation), ['ci retrieve prod/db: DENIED', 'No policy names this agent.']);
  assert.match(remedyLines(explanation, false).join(), /administrator/);
});

test('a suggested command line is parsed by a shell into the same words', async () => {
  const taken = { name: 'a-list', principal: 'agent:b', resources: ['b'], actions: ['list'], max_ttl: 60 };
  const lineFor = async (path: string) =>
    (await explained([Policy.parse(taken)], { agent: 'a', action: 'list', path, request: null } as Asked)).grant;
  const rest = '--action list --max-ttl 300';
  assert.equal(await lineFor('-p'), `leasehold policy put a-list-2 --principal agent:a --resource=-p ${rest}`);
  assert.equal(
    await lineFor('~root/x'),
    `leasehold policy put a-list-2 --principal agent:a --resource '~root/x' ${rest}`,
  );
});

test('the reason names the policies that demand an approval, with the strictest terms', async () => {
  const base = { principal: 'agent:bot', resources: ['llm/*'], actions: ['use'], max_ttl: 300 };
  const drafts = [
    Policy.parse({ ...base, name: 'asks', approval: { for: 'use', each: 'host', scope: '5 uses' } }),
    Policy.parse({ ...base, name: 'two', approval: { for: 'use', scope: '60 seconds', quorum: 2 } }),
  ];
  const question = { agent: 'bot', action: 'use', path: 'llm/key' } as Asked;
  const { reason } = await explained(drafts, question);
  assert.match(
    reason,
    /most restrictive policy that matches\. An approval is needed: policies asks, two, 5 times, within 1 minute, by 2 operators\.$/,
  );
  const [one] = drafts;
  assert.ok(one);
  assert.match((await explained([one], question)).reason, / policy asks, 5 times, within 1 day, by 1 operator\.$/);
  assert.doesNotMatch((await explained([Policy.parse({ ...base, name: 'plain' })], question)).reason, /approval/);
});

test('each row is on its own line, with comments, blank lines and any line endings', () => {
  const text =
    '# all of it\r\n\r\nallow ci retrieve prod/db ttl 60 # a minute\r\n\tdeny  ci  store prod/db\nallow a list p';
  assert.deepEqual(
    readExpectations(text, 'f').map((row) => [row.line, toRow(row)]),
    [
      [3, 'allow ci retrieve prod/db ttl 60'],
      [4, 'deny ci store prod/db'],
      [5, 'allow a list p'],
    ],
  );
});

test('invalid rows are all reported by line and rule, and nothing is requested', () => {
  const rows = [
    'allow ci retrieve prod/db',
    'alow ci retrieve prod/db',
    'permit ci retrieve prod/db',
    'allow ci retrieve',
    'deny admin retreive a//b',
    'allow ci retrieve p ttl 5min',
    'allow ci retrieve p ttl 0',
    'allow ci retrieve p ttl',
    'allow ci retrieve p 60',
    'deny ci retrieve p ttl 60',
    'allow ci retrieve p ttl 60 60',
  ];
  assert.throws(
    () => readExpectations(rows.join('\n'), 'expected.txt'),
    ({ message }: Error) => {
      assert.deepEqual(
        message
          .split('\n')
          .slice(1)
          .map((line) => line.replace(/a row is:.*|(?<=: AGENT: ).*/, '…')),
        [
          'expected.txt:2: …',
          'expected.txt:3: …',
          'expected.txt:4: …',
          'expected.txt:5: AGENT: …',
          'expected.txt:5: ACTION: must be one of retrieve, use, list, store, delete; did you mean retrieve?',
          'expected.txt:5: PATH: must not begin or end with /, nor contain //',
          'expected.txt:6: ttl: must be a whole number of seconds, or a duration such as 15m',
          'expected.txt:7: ttl: must be a whole number of seconds, 1 to 31536000',
          'expected.txt:8: …',
          'expected.txt:9: …',
          'expected.txt:10: ttl: a denial has none',
          'expected.txt:11: …',
        ],
      );
      return true;
    },
  );
});

test('a file without expectations is rejected, because it would always pass', () => {
  for (const text of ['', '\n# allow ci retrieve p\n']) {
    assert.throws(() => readExpectations(text, 'f'), /f: contains no expectations/);
  }
});

test('an expectation holds exactly when the decision is the one that it names', async () => {
  await fc.assert(
    fc.asyncProperty(policySets, fc.nat(2), async (drafts: PolicyDraft[], turn) => {
      const rows = QUESTIONS.map(({ agent, action, path }, at) => {
        const policy = decidePlainly(dated(drafts), agent, action, path);
        const isTrue = (at + turn) % 3 > 0;
        const ttl = policy === null ? '' : ` ttl ${policy.maxTtlSeconds}`;
        if (isTrue) return { row: `${policy === null ? 'deny' : 'allow'} ${agent} ${action} ${path}${ttl}`, isTrue };
        const isTtlOnly = policy !== null && at % 2 === 0;
        const wrong = isTtlOnly ? 'allow' : policy === null ? 'allow' : 'deny';
        return {
          row: `${wrong} ${agent} ${action} ${path}${isTtlOnly ? ` ttl ${policy.maxTtlSeconds + 1}` : ''}`,
          isTrue,
        };
      });
      const text = rows.map(({ row }) => row).join('\n');
      const held = await testExpectations(readExpectations(text, 'f'), localSimulator(drafts));
      assert.deepEqual(
        held.map(({ expected, holds }) => ({ row: expected, isTrue: holds })),
        rows,
      );
      for (const { holds, found } of held) assert.equal(found === null, holds);
    }),
    runs(10, 30),
  );
});

test('a failed expectation reports the actual decision and its reason', async () => {
  const drafts = [Policy.parse({ name: 'n', principal: 'agent:ci', resources: ['prod/*'], actions: ['retrieve'] })];
  const text = 'deny ci retrieve prod/x\nallow ci retrieve prod/x ttl 60\nallow ci retrieve dev/x';
  const held = await testExpectations(readExpectations(text, 'f'), localSimulator(drafts));
  assert.deepEqual(
    held.map(({ line, found }) => [line, found]),
    [
      [1, 'allowed by n for up to 300 s'],
      [2, 'ttl 300 by n'],
      [3, 'denied'],
    ],
  );
  assert.match(held[2]?.reason ?? '', /nearest pattern is prod\/\*/);
});
