/** A valid request for each row of the route table. */
import assert from 'node:assert/strict';
import type { Route } from '../../src/http/route.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { exampleOf } from '../kit/examples.ts';

const ID = '0190a000-0000-7000-8000-000000000000';
const PARAMETERS = { path: 'some/path', name: 'some-name', lease_id: ID, approval_id: ID, seq: '1', id: 'aWQ' };

/** A body that violates no rule except the one under test. */
export const FIELDS: Readonly<Record<string, unknown>> = {
  path: 'some/path',
  value: 'v',
  type: 'token',
  description: 'd',
  ...exampleOf(Policy),
  name: 'some-name',
  nonce: 'bm9uY2U=',
  reason: 'r',
  request: { method: 'GET', url: 'https://api.example.com/v1' },
  agent: 'some-name',
  resource: 'some/path',
  action: 'use',
  roles: ['viewer'],
  public_key: Buffer.alloc(32, 9).toString('base64'),
  agent_name: 'some-name',
  challenge_id: '0190a000-0000-8000-8000-000000000000',
  signature: 'c2ln',
  service: 'openai',
  targets: [{ origin: 'https://api.example.com' }],
  placement: { kind: 'bearer' },
  method: 'GET',
  url: 'https://api.example.com/v1',
  headers: { accept: '*/*' },
  body: 'b',
  body_encoding: 'utf8',
  ttl: 60,
  purpose: 'p',
  grace_seconds: 60,
  kind: 'file',
  parameters: { salt: 'c2FsdA==' },
  key: 'data',
  secret: 'c2VjcmV0',
  identity: { subject: 'some-subject' },
  label: 'some label',
  code: 'c29tZSBjb2Rl',
  state: 'c29tZSBzdGF0ZQ',
  response: {
    id: 'aWQ',
    rawId: 'aWQ',
    type: 'public-key',
    clientExtensionResults: {},
    response: { clientDataJSON: 'e30', attestationObject: 'oA', authenticatorData: 'AA', signature: 'AA' },
  },
};

/** Parameters that no body has. */
const QUERY: Readonly<Record<string, unknown>> = { from: 1, since: '2026-01-01T00:00:00Z', step: 86_400, q: 'some' };

export const addressOf = (path: string) =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: keyof typeof PARAMETERS) => PARAMETERS[name] ?? assert.fail(name));

/** The row's required query parameters, except `without`, to be followed by others. */
export const queryOf = ({ query }: Route, without = '') =>
  (query.required ?? [])
    .filter((name) => name !== without)
    .map((name) => `${name}=${QUERY[name] ?? FIELDS[name] ?? assert.fail(name)}&`)
    .join('');

export const bodyOf = ({ body }: Route): Record<string, unknown> =>
  Object.fromEntries(Object.keys(body?.properties ?? {}).map((name) => [name, FIELDS[name] ?? assert.fail(name)]));
