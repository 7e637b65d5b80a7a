// Real responses conform to the OpenAPI document, including every key. SOURCE: docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { Compile } from 'typebox/schema';
import { startUpstream } from '../broker/upstream.ts';
import { Authenticator } from '../kit/authenticator.ts';
import { readAgentKey, type TestResponse, verifyAs } from '../kit/client.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { startProvider } from '../kit/oidc-provider.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { AUTH, openBrowser } from '../kit/sign-in.ts';
import { readDocument, resolveReferences } from './document.ts';

const provider = await startProvider({ after });
const service = await startTestService({ after }, provider.flags);
const rootKey = readFileSync(join(service.dataDir, 'root.key'), 'utf8').trim();
const { admin, anonymous } = service;
const browser = openBrowser(service);
provider.allow(`${browser.origin}/console/callback`);
const { document, operations } = await readDocument(service);
const agent = await service.agent('ci');
const operator = await addOperator(service, 'viewing', ['viewer']);
const upstream = await startUpstream({ after }, (_, response) => {
  response.setHeader('set-cookie', ['a=1', 'b=2']).end('ok');
});
const origin = `https://127.0.0.1:${upstream.port}`;

const validators = new Map<unknown, ReturnType<typeof Compile>>();

/** Asserts that the response conforms to the document and has no keys besides `data` and `meta`. */
function assertConforms(answer: TestResponse, name: string): void {
  const { operation } = operations.find((one) => one.name === name) ?? assert.fail(name);
  const status = String(answer.status);
  const response = operation.responses[status] ?? operation.responses.default;
  assert.equal(answer.status < 400, operation.responses[status] !== undefined, `${name}: ${answer.text}`);
  if (response.content === undefined) {
    assert.equal(answer.text, '');
    return;
  }
  const [type = ''] = Object.keys(response.content);
  assert.equal(answer.headers.get('content-type')?.startsWith(type), true, name);
  if (type !== 'application/json') return;
  const validator = validators.get(response) ?? Compile(resolveReferences(document, response.content[type].schema));
  validators.set(response, validator);
  const [conforms, errors] = validator.Errors(answer.body);
  assert.equal(conforms, true, `${name}: ${JSON.stringify(errors)} ${answer.text}`);
}

suite('responses conform to the document', () => {
  const policy = { principal: 'agent:ci', resources: ['a'], actions: ['retrieve'] };
  const simulated = (path: string) => ({ agent: 'ci', resource: path, action: 'retrieve' });
  const targets = [{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }];
  const usable = (placement: object) => admin.put('/api/v1/targets/a', { targets, placement });
  const use = (url: string) => admin.post('/api/v1/use', { path: 'a', method: 'GET', url });
  const useLease = async () => {
    await admin.post('/api/v1/credentials', { path: 'used', value: 'a value' });
    await admin.put('/api/v1/targets/used', {
      service: 'openai',
      targets: [{ origin: 'https://api.example.com' }],
      placement: { kind: 'bearer' },
    });
    await admin.post('/api/v1/policies', { ...policy, name: 'uses', resources: ['used'], actions: ['use'] });
    return agent.post('/api/v1/leases/use', { path: 'used', ttl: 60, purpose: 'a report' });
  };
  const newKey = () => ({ public_key: newOperatorKey().publicKey });
  const newOperator = (name: string) => ({ name, roles: ['viewer', 'editor'], ...newKey() });
  /** The agent's retrieval of `held`, which waits for an approval. */
  const held = async (...others: readonly string[]) => {
    await admin.post('/api/v1/credentials', { path: 'held', value: 'a value' });
    await demandApproval(service, 'ci', ['held', ...others]);
    const { abandon, ...approval } = await askToRetrieve(service, agent.token, 'held');
    await abandon();
    return approval;
  };
  const answer = async (how: 'approve' | 'deny', id: string, nonce: string) =>
    admin.post(`/api/v1/approvals/${id}/${how}`, { nonce });
  const approver = () => admin.put('/api/v1/operators/viewing', { roles: ['approver'] });
  let asked = { approval_id: '', nonce: '' };
  let lease = '';
  const authenticator = new Authenticator();
  const member = { name: 'member', roles: ['viewer'], identity: { subject: 'sub' } };
  const ask = (path: string, body: object = {}) => browser.post(`${AUTH}/${path}`, body);
  let code = '';
  const invite = async () => {
    const answer = await admin.post('/api/v1/operators/member/enrolment');
    code = answer.body.data.code;
    return answer;
  };
  const atProvider = async () =>
    ask('oidc/verify', await provider.visit((await ask('oidc/options')).body.data.url, { subject: 'sub' }));
  const handOver = async () => ask('handoff/redeem', { code: (await operator.post(`${AUTH}/handoff`)).body.data.code });

  /** In order: later requests use what earlier ones created. */
  const CALLS: readonly (readonly [name: string, call: () => Promise<TestResponse>, status: number])[] = [
    ['post /api/v1/credentials', () => admin.post('/api/v1/credentials', { path: 'a', value: 'a value' }), 201],
    ['put /api/v1/targets/{path}', () => usable({ kind: 'basic' }), 200],
    ['put /api/v1/targets/{path}', () => usable({ kind: 'header', name: 'x-key', template: 'k {value}' }), 200],
    ['put /api/v1/targets/{path}', () => usable({ kind: 'basic', username: 'me' }), 200],
    ['get /api/v1/targets/{path}', () => admin.get('/api/v1/targets/a'), 200],
    ['post /api/v1/use', () => use(`${origin}/v1?a=1`), 200],
    ['post /api/v1/use', () => use('https://api.example.com/v1'), 403],
    ['delete /api/v1/targets/{path}', () => admin.delete('/api/v1/targets/a'), 204],
    ['get /api/v1/targets/{path}', () => admin.get('/api/v1/targets/a'), 404],
    ['post /api/v1/agents', () => admin.post('/api/v1/agents', { name: 'other' }), 201],
    ['post /api/v1/agents', () => admin.post('/api/v1/agents', { name: 'OTHER' }), 409],
    ['get /api/v1/agents', () => admin.get('/api/v1/agents'), 200],
    ['get /api/v1/agents', () => admin.get('/api/v1/agents?limit=1'), 200],
    ['get /api/v1/agents/{name}', () => admin.get('/api/v1/agents/other'), 200],
    ['post /api/v1/operators', () => admin.post('/api/v1/operators', newOperator('other')), 201],
    ['post /api/v1/operators', () => admin.post('/api/v1/operators', newOperator('OTHER')), 409],
    ['get /api/v1/operators', () => admin.get('/api/v1/operators'), 200],
    ['get /api/v1/operators', () => admin.get('/api/v1/operators?limit=1'), 200],
    ['get /api/v1/operators/{name}', () => admin.get('/api/v1/operators/other'), 200],
    ['put /api/v1/operators/{name}', () => admin.put('/api/v1/operators/other', { roles: ['approver'] }), 200],
    ['post /api/v1/operators/{name}/rotate', () => admin.post('/api/v1/operators/other/rotate', newKey()), 200],
    ['get /api/v1/auth/methods', () => browser.get(`${AUTH}/methods`), 200],
    ['post /api/v1/operators', () => admin.post('/api/v1/operators', member), 201],
    ['post /api/v1/operators/{name}/enrolment', invite, 200],
    ['post /api/v1/auth/passkey/register-options', () => ask('passkey/register-options', { code }), 200],
    ['post /api/v1/auth/passkey/register', () => browser.enrol(code, authenticator), 201],
    ['post /api/v1/auth/passkey/options', () => ask('passkey/options'), 200],
    ['post /api/v1/auth/passkey/options', () => anonymous.post(`${AUTH}/passkey/options`), 400],
    ['post /api/v1/auth/passkey/verify', () => browser.signIn(authenticator), 200],
    ['post /api/v1/auth/oidc/options', () => ask('oidc/options'), 200],
    ['post /api/v1/auth/oidc/verify', atProvider, 200],
    ['post /api/v1/auth/browser', () => operator.post(`${AUTH}/browser`), 200],
    ['post /api/v1/auth/browser', () => admin.post(`${AUTH}/browser`), 200],
    ['post /api/v1/auth/handoff', () => operator.post(`${AUTH}/handoff`), 200],
    ['post /api/v1/auth/handoff/redeem', handOver, 200],
    ['get /api/v1/operators/{name}', () => admin.get('/api/v1/operators/member'), 200],
    [
      'delete /api/v1/operators/{name}/passkeys/{id}',
      () => admin.delete(`/api/v1/operators/member/passkeys/${authenticator.id}`),
      204,
    ],
    ['delete /api/v1/operators/{name}', () => admin.delete('/api/v1/operators/other'), 204],
    ['post /api/v1/policies', () => admin.post('/api/v1/policies', { name: 'p', ...policy }), 201],
    ['put /api/v1/policies/{name}', () => admin.put('/api/v1/policies/p', policy), 200],
    ['get /api/v1/policies', () => admin.get('/api/v1/policies'), 200],
    ['get /api/v1/policies', () => admin.get('/api/v1/policies?offset=0'), 200],
    ['get /api/v1/policies/{name}', () => admin.get('/api/v1/policies/p'), 200],
    ['post /api/v1/policies/simulate', () => admin.post('/api/v1/policies/simulate', simulated('a')), 200],
    ['post /api/v1/policies/simulate', () => admin.post('/api/v1/policies/simulate', simulated('b')), 200],
    ['post /auth/challenge', () => anonymous.post('/auth/challenge', { agent_name: 'ci' }), 200],
    ['post /auth/verify', () => verifyAs(service.address, 'ci', readAgentKey(service.dataDir, 'ci')), 200],
    ['get /auth/session', () => agent.get('/auth/session'), 200],
    ['post /auth/verify', () => verifyAs(service.address, 'operator:viewing', operator.key.privateKey), 200],
    ['get /auth/session', () => operator.get('/auth/session'), 200],
    ['post /auth/session/renew', () => operator.post('/auth/session/renew'), 200],
    ['post /auth/session/renew', () => agent.post('/auth/session/renew'), 403],
    ['get /api/v1/credentials/{path}', () => agent.get('/api/v1/credentials/a'), 200],
    ['get /api/v1/credentials/{path}', () => agent.get('/api/v1/credentials/a?view=metadata'), 403],
    ['get /api/v1/credentials/{path}', () => admin.get('/api/v1/credentials/a?view=metadata'), 200],
    ['get /api/v1/credentials', () => admin.get('/api/v1/credentials'), 200],
    [
      'get /api/v1/leases',
      async () => {
        const answer = await admin.get('/api/v1/leases?limit=5');
        lease = answer.body.data[0].lease_id;
        return answer;
      },
      200,
    ],
    ['put /api/v1/operators/{name}', approver, 200],
    [
      'get /api/v1/approvals/{approval_id}',
      async () => {
        asked = await held();
        return admin.get(`/api/v1/approvals/${asked.approval_id}`);
      },
      200,
    ],
    ['get /api/v1/policies/{name}', () => admin.get('/api/v1/policies/asks-ci'), 200],
    ['get /api/v1/approvals', () => agent.get('/api/v1/approvals'), 200],
    ['get /api/v1/approvals', () => admin.get('/api/v1/approvals?status=pending&agent=ci&limit=1'), 200],
    ['post /api/v1/approvals/{approval_id}/approve', () => answer('approve', asked.approval_id, asked.nonce), 200],
    ['post /api/v1/approvals/{approval_id}/approve', () => answer('approve', asked.approval_id, asked.nonce), 409],
    ['delete /api/v1/approvals/{approval_id}', () => admin.delete(`/api/v1/approvals/${asked.approval_id}`), 204],
    ['get /api/v1/credentials/{path}', () => agent.get('/api/v1/credentials/held'), 403],
    [
      'post /api/v1/approvals/{approval_id}/deny',
      async () => {
        asked = await held('another');
        return answer('deny', asked.approval_id, asked.nonce);
      },
      200,
    ],
    ['get /api/v1/approvals/{approval_id}', () => admin.get(`/api/v1/approvals/${asked.approval_id}`), 200],
    ['get /api/v1/leases/{lease_id}', () => admin.get(`/api/v1/leases/${lease}`), 200],
    ['post /api/v1/leases/{lease_id}/renew', () => agent.post(`/api/v1/leases/${lease}/renew`), 200],
    ['post /api/v1/leases/use', () => agent.post('/api/v1/leases/use', { path: 'a' }), 403],
    ['post /api/v1/leases/use', () => useLease(), 201],
    ['post /api/v1/leases/revoke', () => admin.post('/api/v1/leases/revoke', { path: 'a' }), 200],
    ['get /api/v1/leases/{lease_id}', () => admin.get(`/api/v1/leases/${lease}`), 200],
    ['post /api/v1/leases/{lease_id}/renew', () => agent.post(`/api/v1/leases/${lease}/renew`), 409],
    ['delete /api/v1/leases/{lease_id}', () => agent.delete(`/api/v1/leases/${lease}`), 204],
    ['get /api/v1/exposure', () => admin.get('/api/v1/exposure?agent=ci'), 200],
    ['get /api/v1/exposure', () => admin.get('/api/v1/exposure?agent=ci&limit=1'), 200],
    ['get /api/v1/exposure/{path}', () => admin.get('/api/v1/exposure/a'), 200],
    ['get /api/v1/panic', () => admin.get('/api/v1/panic'), 200],
    ['get /api/v1/panic', () => admin.get('/api/v1/panic?agent=other'), 200],
    ['post /api/v1/panic', () => admin.post('/api/v1/panic', { agent: 'other' }), 200],
    ['get /api/v1/audit', () => admin.get('/api/v1/audit'), 200],
    ['get /api/v1/audit', () => admin.get('/api/v1/audit?result=denied'), 200],
    ['get /api/v1/audit/verify', () => admin.get('/api/v1/audit/verify'), 200],
    ['get /api/v1/audit/verify/progress', () => admin.get('/api/v1/audit/verify/progress'), 200],
    ['get /api/v1/audit/checkpoint', () => admin.get('/api/v1/audit/checkpoint'), 200],
    ['get /api/v1/audit/entries/{seq}/proof', () => admin.get('/api/v1/audit/entries/1/proof'), 200],
    ['get /api/v1/audit/consistency', () => admin.get('/api/v1/audit/consistency?from=1'), 200],
    ['get /api/v1/audit/rollback', () => admin.get('/api/v1/audit/rollback'), 200],
    ['post /api/v1/audit/rollback', () => admin.post('/api/v1/audit/rollback', {}), 200],
    ['get /api/v1/matrix', () => admin.get('/api/v1/matrix'), 200],
    ['get /api/v1/tree', () => admin.get('/api/v1/tree'), 200],
    ['get /api/v1/search', () => admin.get('/api/v1/search?q=a'), 200],
    ['get /api/v1/attention', () => admin.get('/api/v1/attention'), 200],
    ['get /api/v1/activity', () => admin.get('/api/v1/activity'), 200],
    ['get /api/v1/nodes', () => admin.get('/api/v1/nodes'), 200],
    ['get /api/v1/audit/export', () => admin.get('/api/v1/audit/export'), 200],
    ['post /api/v1/backup', () => admin.post('/api/v1/backup'), 200],
    ['get /api/v1/services', () => admin.get('/api/v1/services'), 200],
    ['get /api/v1/health', () => anonymous.get('/api/v1/health'), 200],
    ['get /metrics', () => anonymous.get('/metrics'), 200],
    ['get /livez', () => anonymous.get('/livez'), 200],
    ['get /readyz', () => anonymous.get('/readyz'), 200],
    ['get /openapi.json', () => anonymous.get('/openapi.json'), 200],
    ['post /api/v1/agents/{name}/rotate', () => admin.post('/api/v1/agents/other/rotate', { grace_seconds: 0 }), 200],
    ['post /api/v1/key/slots', () => admin.post('/api/v1/key/slots', { name: 'second', kind: 'file' }), 201],
    ['post /api/v1/key/slots', () => admin.post('/api/v1/key/slots', { name: 'second', kind: 'file' }), 409],
    ['get /api/v1/key/slots', () => admin.get('/api/v1/key/slots'), 200],
    ['post /api/v1/key/slots/{name}/test', () => admin.post('/api/v1/key/slots/second/test', {}), 200],
    ['delete /api/v1/key/slots/{name}', () => admin.delete('/api/v1/key/slots/second'), 204],
    ['post /api/v1/key/rotate', () => admin.post('/api/v1/key/rotate', { key: 'root' }), 200],
    ['post /api/v1/lock', () => admin.post('/api/v1/lock', {}), 200],
    ['get /api/v1/agents', () => admin.get('/api/v1/agents'), 503],
    ['get /api/v1/unlock', () => anonymous.get('/api/v1/unlock'), 200],
    ['post /api/v1/unlock', () => anonymous.post('/api/v1/unlock', { secret: 'a' }), 400],
    ['post /api/v1/unlock', () => anonymous.post('/api/v1/unlock', { secret: rootKey }), 200],
    ['delete /auth/session', () => agent.delete('/auth/session'), 204],
    ['delete /api/v1/policies/{name}', () => admin.delete('/api/v1/policies/p'), 204],
    ['delete /api/v1/agents/{name}', () => admin.delete('/api/v1/agents/other'), 204],
    ['delete /api/v1/credentials/{path}', () => admin.delete('/api/v1/credentials/a'), 204],
    ['delete /api/v1/credentials/{path}', () => anonymous.delete('/api/v1/credentials/a'), 401],
    ['post /auth/verify', () => anonymous.post('/auth/verify', {}), 400],
  ];

  for (const [name, call, status] of CALLS) {
    test(`responses conform to the document: ${name}, ${status}`, async () => {
      const answer = await call();
      assert.equal(answer.status, status, answer.text);
      assertConforms(answer, name);
    });
  }

  test('a successful call of every operation was checked', () => {
    const called = new Set(CALLS.flatMap(([name, , status]) => (status < 400 ? [name] : [])));
    const missing = operations.filter(({ name }) => !called.has(name));
    assert.deepEqual(
      missing.map(({ name }) => name),
      [],
    );
  });
});
