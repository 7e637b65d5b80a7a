// Responses that the matrix of routes and callers lacks conform to the OpenAPI document too: sign-ins, a locked vault,
// errors of other codes, and fields that are absent or null there. SOURCE: docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Authenticator } from '../kit/authenticator.ts';
import type { TestResponse } from '../kit/client.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { startProvider } from '../kit/oidc-provider.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { AUTH, openBrowser } from '../kit/sign-in.ts';
import { conformance, readDocument } from './document.ts';

const provider = await startProvider({ after });
const service = await startTestService({ after }, provider.flags);
const rootKey = readFileSync(join(service.dataDir, 'root.key'), 'utf8').trim();
const { admin, anonymous } = service;
const browser = openBrowser(service);
provider.allow(`${browser.origin}/console/callback`);
const assertConforms = conformance(await readDocument(service));
const agent = await service.agent('ci', { 'a/*': ['retrieve', 'use'] });
const operator = await addOperator(service, 'answering', ['approver']);
const member = { name: 'member', roles: ['viewer'], identity: { subject: 'sub' } };
await admin.post('/api/v1/operators', member);
const authenticator = new Authenticator();

const ask = (path: string, body: object = {}) => browser.post(`${AUTH}/${path}`, body);
const invite = async () => (await admin.post('/api/v1/operators/member/enrolment')).body.data.code;
const signInAtProvider = async () =>
  ask('oidc/verify', await provider.visit((await ask('oidc/options')).body.data.url, { subject: 'sub' }));
const handOver = async () => ask('handoff/redeem', { code: (await operator.post(`${AUTH}/handoff`)).body.data.code });

const targets = [{ origin: 'https://api.example.com' }];
const place = (placement: object, service?: string) =>
  admin.put('/api/v1/targets/a/key', { targets, placement, service });
const simulate = (resource: string) =>
  admin.post('/api/v1/policies/simulate', { agent: 'ci', resource, action: 'retrieve' });
const addSlot = () => admin.post('/api/v1/key/slots', { name: 'second', kind: 'file' });
const newAgent = () => admin.post('/api/v1/agents', { name: 'other' });
/** The approval that the agent's retrieval waits for. */
const readHeld = async () => {
  await demandApproval(service, 'ci', ['held']);
  await admin.post('/api/v1/credentials', { path: 'held', value: 'a value' });
  const { approval_id, abandon } = await askToRetrieve(service, agent.token, 'held');
  await abandon();
  return admin.get(`/api/v1/approvals/${approval_id}`);
};
/** A lease that has ended. */
const renewEnded = async () => {
  const { lease_id } = (await agent.get('/api/v1/credentials/a/key')).body.data;
  await admin.post('/api/v1/leases/revoke', { path: 'a/key' });
  assertConforms(await admin.get(`/api/v1/leases/${lease_id}`), 'get /api/v1/leases/{lease_id}');
  return agent.post(`/api/v1/leases/${lease_id}/renew`);
};

/** ORDER: later requests use what earlier ones created. */
const CALLS: readonly (readonly [name: string, call: () => Promise<TestResponse>, status: number])[] = [
  ['get /api/v1/auth/methods', () => browser.get(`${AUTH}/methods`), 200],
  [
    'post /api/v1/auth/passkey/register-options',
    async () => ask('passkey/register-options', { code: await invite() }),
    200,
  ],
  ['post /api/v1/auth/passkey/register', async () => browser.enrol(await invite(), authenticator), 201],
  ['post /api/v1/auth/passkey/options', () => anonymous.post(`${AUTH}/passkey/options`), 400],
  ['post /api/v1/auth/passkey/verify', () => browser.signIn(authenticator), 200],
  ['post /api/v1/auth/oidc/options', () => ask('oidc/options'), 200],
  ['post /api/v1/auth/oidc/verify', signInAtProvider, 200],
  ['post /api/v1/auth/handoff/redeem', handOver, 200],
  ['get /api/v1/operators/{name}', () => admin.get('/api/v1/operators/member'), 200],
  ['get /api/v1/operators', () => admin.get('/api/v1/operators?limit=1'), 200],
  ['post /api/v1/credentials', () => admin.post('/api/v1/credentials', { path: 'a/key', value: 'a value' }), 201],
  ['put /api/v1/targets/{path}', () => place({ kind: 'basic' }), 200],
  ['put /api/v1/targets/{path}', () => place({ kind: 'basic', username: 'me' }), 200],
  ['put /api/v1/targets/{path}', () => place({ kind: 'header', name: 'x-key', template: 'k {value}' }, 'openai'), 200],
  ['post /api/v1/leases/use', () => agent.post('/api/v1/leases/use', { path: 'a/key', purpose: 'a report' }), 201],
  ['post /api/v1/agents', newAgent, 201],
  ['post /api/v1/agents', newAgent, 409],
  ['post /api/v1/policies/simulate', () => simulate('a/key'), 200],
  ['post /api/v1/policies/simulate', () => simulate('b'), 200],
  ['post /api/v1/leases/{lease_id}/renew', renewEnded, 409],
  ['get /api/v1/approvals/{approval_id}', readHeld, 200],
  ['get /api/v1/policies/{name}', () => admin.get('/api/v1/policies/asks-ci'), 200],
  ['get /api/v1/audit', () => admin.get('/api/v1/audit?result=denied'), 200],
  ['post /api/v1/key/slots', addSlot, 201],
  ['post /api/v1/key/slots', addSlot, 409],
  ['post /api/v1/lock', () => admin.post('/api/v1/lock', {}), 200],
  ['get /api/v1/agents', () => admin.get('/api/v1/agents'), 503],
  ['get /api/v1/unlock', () => anonymous.get('/api/v1/unlock'), 200],
  ['post /api/v1/unlock', () => anonymous.post('/api/v1/unlock', { secret: 'a' }), 400],
  ['post /api/v1/unlock', () => anonymous.post('/api/v1/unlock', { secret: rootKey }), 200],
];

for (const [name, call, status] of CALLS) {
  test(`the response conforms to the document: ${name}, ${status}`, async () => {
    const answer = await call();
    assert.equal(answer.status, status, answer.text);
    assertConforms(answer, name);
  });
}
