// Files of expectations: their rows, errors about invalid rows, and results.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { localSimulator } from '../../src/cli/policy/access-query.ts';
import { holdExpectations, readExpectations, toRow } from '../../src/cli/policy/expectations.ts';
import { type PolicyDraft, parsePolicy } from '../../src/core/policy.ts';
import { decidePlainly } from '../core/reference.ts';
import { runs } from '../kit/property.ts';
import { policySets, QUESTIONS } from './random-policies.ts';

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
      const held = await holdExpectations(readExpectations(text, 'f'), localSimulator(drafts));
      assert.deepEqual(
        held.map(({ expected, holds }) => ({ row: expected, isTrue: holds })),
        rows,
      );
      for (const { holds, found } of held) assert.equal(found === null, holds);
    }),
    runs(10, 30),
  );
});

const dated = (drafts: readonly PolicyDraft[]) => drafts.map((draft) => ({ ...draft, createdAt: 0 }));

test('a failed expectation reports the actual decision and its reason', async () => {
  const drafts = [parsePolicy({ name: 'n', principal: 'agent:ci', resources: ['prod/*'], actions: ['retrieve'] })];
  const text = 'deny ci retrieve prod/x\nallow ci retrieve prod/x ttl 60\nallow ci retrieve dev/x';
  const held = await holdExpectations(readExpectations(text, 'f'), localSimulator(drafts));
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
