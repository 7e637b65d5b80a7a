// Which row an entry records, with which MAC. SOURCE: docs/formats.md, "State in the log".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectRows } from '../kit/direct-db.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

/** The recorded states in the order of the audit log. */
async function readRecorded(dataDir: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const rows = await selectRows(
    dataDir,
    'SELECT subject, state FROM audit_entries WHERE subject IS NOT NULL ORDER BY seq',
  );
  return rows.map((row) => ({ ...row }));
}

test('an entry that makes, changes or removes a row records its MAC, and every other entry records nothing', async (t) => {
  const { admin, agent, dataDir } = await startTestService(t);
  const bot = await agent('Deploy-Bot', { 'prod/*': ['retrieve', 'store'] });
  const macOf = async (table: string): Promise<string> => {
    const [row] = await selectRows(dataDir, `SELECT mac FROM ${table}`);
    return String(row?.['mac']);
  };
  const [session] = await selectRows(dataDir, 'SELECT issued_at, token_hash FROM sessions');
  const sessionSubject = `session:${session?.['issued_at']}:${session?.['token_hash']}`;
  const states = [await macOf('agents'), await macOf('policies'), await macOf('sessions')];
  await bot.post('/api/v1/credentials', { path: 'prod/key', value: 'one' });
  states.push(await macOf('credentials'));
  await bot.get('/api/v1/credentials/prod/key');
  await bot.post('/api/v1/credentials', { path: 'prod/key', value: 'two' });
  states.push(await macOf('credentials'));
  assert.equal((await admin.put('/api/v1/targets/prod/key', { service: 'openai' })).status, 200);
  states.push(await macOf('credential_targets'));
  for (const path of ['credentials/prod/key', 'policies/Deploy-Bot-0', 'policies/none']) {
    await admin.delete(`/api/v1/${path}`);
  }
  await bot.delete('/auth/session');
  await admin.delete('/api/v1/agents/Deploy-Bot');
  const subjects = [
    'agent:deploy-bot',
    'policy:Deploy-Bot-0',
    sessionSubject,
    'credential:prod/key',
    'credential:prod/key',
    'targets:prod/key',
    'credential:prod/key',
    'policy:Deploy-Bot-0',
    sessionSubject,
    'agent:deploy-bot',
  ];
  assert.deepEqual(
    await readRecorded(dataDir),
    subjects.map((subject, index) => ({ subject, state: states[index] ?? 'removed' })),
  );
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
});

test('an entry that adds, changes or removes an operator or its session records its MAC', async (t) => {
  const clock = startTestClock(t);
  const service = await startTestService(t);
  const { admin, dataDir } = service;
  const macOf = async (table: string): Promise<string> => {
    const [row] = await selectRows(dataDir, `SELECT mac FROM ${table}`);
    return String(row?.['mac']);
  };
  const ann = await addOperator(service, 'Ann', ['viewer']);
  const [session] = await selectRows(dataDir, 'SELECT issued_at, token_hash FROM sessions');
  const sessionSubject = `session:${session?.['issued_at']}:${session?.['token_hash']}`;
  const states = [await macOf('operators'), await macOf('sessions')];
  // A session is renewed once a minute at most.
  await clock.move(60_000);
  const steps: readonly (readonly [table: string, step: () => Promise<{ status: number }>])[] = [
    ['operators', () => admin.put('/api/v1/operators/Ann', { roles: ['approver'] })],
    ['sessions', () => ann.post('/auth/session/renew')],
    ['operators', () => admin.post('/api/v1/operators/Ann/rotate', { public_key: newOperatorKey().publicKey })],
  ];
  for (const [table, step] of steps) {
    assert.equal((await step()).status, 200);
    states.push(await macOf(table));
  }
  assert.equal((await admin.delete('/api/v1/operators/Ann')).status, 204);
  const operator = 'operator:ann';
  const subjects = [operator, sessionSubject, operator, sessionSubject, operator, operator];
  assert.deepEqual(
    await readRecorded(dataDir),
    subjects.map((subject, index) => ({ subject, state: states[index] ?? 'removed' })),
  );
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
});

test('a panic about all agents has one entry per agent with the same id, and the chain verifies', async (t) => {
  const { admin, agent, dataDir } = await startTestService(t);
  for (const name of ['one', 'two', 'three']) await agent(name);
  assert.equal((await admin.post('/api/v1/panic', {})).status, 200);
  const entries = await selectRows(dataDir, "SELECT id, state FROM audit_entries WHERE event_type = 'service.panic'");
  const agents = await selectRows(dataDir, 'SELECT mac FROM agents');
  assert.equal(new Set(entries.map(({ id }) => id)).size, 1);
  assert.deepEqual(entries.map(({ state }) => state).sort(), agents.map(({ mac }) => mac).sort());
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
});
