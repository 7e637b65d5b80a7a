// Hostile names: file-system paths, look-alikes, and probes for existing names. SOURCE: docs/decisions.md, "Names and
// paths".

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { TestResponse } from '../kit/client.ts';
import { assertInvalid, assertRejected } from '../kit/responses.ts';
import { share, startFixture, words } from './fixture.ts';

const fixture = await startFixture({ after });
const { admin, anonymous, dataDir } = fixture.service;

const AMBIGUOUS_NAMES = [
  ...words`
    . .. .pending .insider ../insider ../../etc insider/.. ./insider a/b /insider insider/ ..\\insider C: C:\\a
    %2e%2e in%73ider ~ ~root $HOME -insider -rf _insider * ins* \u0456nsider \uff49nsider insider\u0301 i\u200bnsider
    \u202einsider \u0131nsider insi\u{10dbc}er \ud800 admin Admin SERVICE anonymous \u0430dmin agent:insider
    insider,admin insider;admin insider'--
  `,
  'a\\b',
  'insider\u0000',
  'insider\u0000.x',
  'insider ',
  ' insider',
  'in sider',
  'insider\n',
  'insider\t',
  '\u007finsider',
  '',
  '__proto__',
  'n'.repeat(64),
  'n'.repeat(30_000),
];

const ENTRY_POINTS: Readonly<Record<string, { field: string; send: (name: string) => Promise<TestResponse> }>> = {
  'a registration': { field: 'name', send: (name) => admin.post('/api/v1/agents', { name }) },
  'a challenge': { field: 'agent_name', send: (agent_name) => anonymous.post('/auth/challenge', { agent_name }) },
  'a verify': {
    field: 'agent_name',
    send: (agent_name) => {
      const challenge_id = '01890000-0000-8000-8000-000000000000';
      return anonymous.post('/auth/verify', { challenge_id, agent_name, signature: 'AAAA' });
    },
  },
  'a simulation': {
    field: 'agent',
    send: (agent) => admin.post('/api/v1/policies/simulate', { agent, resource: 'open/stored', action: 'retrieve' }),
  },
};

test('every entry point rejects ambiguous names', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [index, { field, send }] of Object.values(ENTRY_POINTS).entries())
      for (const name of share(AMBIGUOUS_NAMES, index, index === 0 ? 1 : 4)) assertInvalid(await send(name), field);
  }));

test('deregistration takes the name literally and never as a path', () =>
  fixture.assertUnchangedBy(async () => {
    const spellings = [
      '..',
      '%2e%2e',
      '..%2finsider',
      'insider%2f',
      'insider%00',
      '.pending',
      '%2epending',
      'insider%20',
      '%69nsider%2f..',
    ];
    for (const spelling of spellings) {
      const code = await fixture.codeOf({ method: 'DELETE', target: `/api/v1/agents/${spelling}` });
      assert.equal(code, 'INVALID_REQUEST', spelling);
    }
    assert.equal(existsSync(join(dataDir, 'agents', '.pending')), true);
  }));

test('a name in another case is unknown, but cannot be registered', () =>
  fixture.assertUnchangedBy(async () => {
    for (const name of ['Insider', 'INSIDER', 'insideR']) {
      assertRejected(await admin.post('/api/v1/agents', { name }), 'ALREADY_EXISTS');
      assertRejected(await admin.get(`/api/v1/agents/${name}`), 'NOT_FOUND');
      assertRejected(await admin.delete(`/api/v1/agents/${name}`), 'NOT_FOUND');
      assert.equal(existsSync(join(dataDir, 'agents', name)), false);
    }
  }, Array.from({ length: 3 }, () => ['agent.register denied', 'agent.deregister not_found']).flat()));

test('the longest names get a directory each, also with a common prefix', async () => {
  const long = 'n'.repeat(63);
  for (const name of [long, long.slice(1), 'a.b', 'a', 'a..b', 'a.', 'con', 'nul.txt']) {
    assert.equal((await admin.post('/api/v1/agents', { name })).status, 201, name);
    assert.equal(existsSync(join(dataDir, 'agents', name, 'private_key.pem')), true, name);
  }
  assert.equal((await admin.delete(`/api/v1/agents/${long}`)).status, 204);
  assert.equal(existsSync(join(dataDir, 'agents', long)), false);
  assert.equal(existsSync(join(dataDir, 'agents', long.slice(1), 'private_key.pem')), true);
});

test('an agent cannot tell another agent’s resources from missing ones, except by the request id', async () => {
  const other = await fixture.service.agent('other', { 'open/*': ['retrieve'] });
  const { lease_id } = (await other.get('/api/v1/credentials/open/stored')).body.data;
  const none = '01890000-0000-7000-8000-000000000000';
  const shapeOf = ({ status, text, headers }: TestResponse) => [status, text, [...headers.keys()].sort()];
  for (const [method, rest] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/renew'],
  ] as const) {
    const [theirs, nobodys] = [
      await fixture.agent.call(method, `/api/v1/leases/${lease_id}${rest}`),
      await fixture.agent.call(method, `/api/v1/leases/${none}${rest}`),
    ];
    assert.deepEqual(shapeOf(theirs), shapeOf(nobodys));
    assert.equal(theirs.status, 404);
  }
  await admin.post('/api/v1/credentials', { path: 'closed/there', value: 'v' });
  for (const method of ['GET', 'DELETE']) {
    for (const query of ['', '?view=metadata', '?version=1']) {
      if (method === 'DELETE' && query !== '') continue;
      const [there, missing] = [
        await fixture.agent.call(method, `/api/v1/credentials/closed/there${query}`),
        await fixture.agent.call(method, `/api/v1/credentials/closed/none${query}`),
      ];
      assert.deepEqual(shapeOf(there), shapeOf(missing));
      assert.equal(there.status, 403);
    }
  }
});

test('login throttling is the same for known and unknown names', async () => {
  for (const agent_name of ['insider', 'nobody']) {
    const startedAt = performance.now();
    let count = 0;
    for (;;) {
      const { challenge_id } = (await anonymous.post('/auth/challenge', { agent_name })).body.data;
      const answer = await anonymous.post('/auth/verify', { challenge_id, agent_name, signature: 'AAAA' });
      if (answer.status === 429) break;
      assertRejected(answer, 'AUTH_FAILED');
      count += 1;
    }
    // One more attempt may fail for each second that has passed. WHY no comparison of the two: a machine that stops for
    // some seconds before the first or after the last attempt allows none more.
    const seconds = Math.ceil((performance.now() - startedAt) / 1000);
    assert.ok(count >= 60 && count <= 60 + seconds, `${agent_name}: ${count} in ${seconds} s`);
  }
});
