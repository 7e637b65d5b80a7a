// Policies as resources. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertInvalid, assertNoContent, dataOf, TIMESTAMP } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const POLICIES = '/api/v1/policies';
const POLICY = 'name principal resources actions max_ttl created_at';
const DRAFT = { principal: 'agent:someone', resources: ['some/*'], actions: ['retrieve'] };

const service = await startTestService({ after });
const { admin } = service;
const create = (name: string, more: Record<string, unknown> = {}) => admin.post(POLICIES, { name, ...DRAFT, ...more });

test('POST /policies returns 201 with the policy', async () => {
  const given = { principal: 'agent:ci', resources: ['prod/*', 'dev/key'], actions: ['retrieve', 'list'], max_ttl: 60 };
  const { created_at, ...rest } = dataOf(await create('posted', given), 201, POLICY);
  assert.deepEqual(rest, { name: 'posted', ...given });
  assert.match(created_at, TIMESTAMP);
});

test('PUT /policies/:name creates or replaces, 200 either way', async () => {
  const created = dataOf(await admin.put(`${POLICIES}/put`, { ...DRAFT, max_ttl: 60 }), 200, POLICY);
  assert.equal(created.max_ttl, 60);
  const given = { principal: 'agent:other', resources: ['*'], actions: ['list'] };
  const replaced = dataOf(await admin.put(`${POLICIES}/put`, given), 200, POLICY);
  assert.deepEqual(replaced, { name: 'put', ...given, max_ttl: 300, created_at: created.created_at });
  assert.deepEqual((await admin.get(`${POLICIES}/put`)).body.data, replaced);
});

test('PUT accepts a name in the body that equals the one in the path', async () => {
  dataOf(await admin.put(`${POLICIES}/put-named`, { name: 'put-named', ...DRAFT }), 200, POLICY);
  assertInvalid(await admin.put(`${POLICIES}/put-named`, { name: 'another', ...DRAFT }), 'name');
});

test('a policy may be named simulate, and is read, replaced and deleted like any other', async () => {
  const created = dataOf(await create('simulate'), 201, POLICY);
  assert.deepEqual(dataOf(await admin.get(`${POLICIES}/simulate`), 200, POLICY), created);
  dataOf(await admin.put(`${POLICIES}/simulate`, DRAFT), 200, POLICY);
  assertNoContent(await admin.delete(`${POLICIES}/simulate`));
});
