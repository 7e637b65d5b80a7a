// The decision about a brokered request, its audit entry, and the conditions that abort a running request.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BatchState, LoadedRows } from '../../src/core/batch-state.ts';
import { removeRow } from '../../src/core/change.ts';
import { ControlState } from '../../src/core/control.ts';
import { resultFields, toApiError } from '../../src/core/denials.ts';
import type { AuthContext } from '../../src/core/identity.ts';
import type { AgentId, AgentName, CredentialId, CredentialType, EntryId, TokenHash } from '../../src/core/names.ts';
import type { Context, Operation, Outcome } from '../../src/core/operation.ts';
import { parsePath } from '../../src/core/path.ts';
import type { ApprovalPending } from '../../src/vault/approvals/approval-requests.ts';
import { type Credential, Secret } from '../../src/vault/credentials/credential.ts';
import { remove } from '../../src/vault/credentials/credential-operations.ts';
import { retrieve } from '../../src/vault/credentials/retrieve.ts';
import type { Lease } from '../../src/vault/leases/lease.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { parseMethod, parseTargets } from '../../src/vault/use/target.ts';
import { deleteTargets, putTargets } from '../../src/vault/use/target-operations.ts';
import { parseUrl } from '../../src/vault/use/upstream-url.ts';
import { issueUseLease } from '../../src/vault/use/use-lease-operations.ts';
import { type AdmittedRequest, checkUse, endUse, startUse } from '../../src/vault/use/use-operations.ts';
import { decided } from '../kit/decided.ts';
import { agentOf } from './approvals/world.ts';

const NOW = Date.UTC(2026, 0, 1);
const PATH = parsePath('openai/key');
const SESSION = 'session' as TokenHash;
const LEASE_TOKEN = 'lease token' as TokenHash;
const CI = 'ci' as AgentName;
const CREDENTIAL: Credential = {
  id: 'credential' as CredentialId,
  path: PATH,
  type: 'api_key' as CredentialType,
  description: '',
  createdAt: 0,
  updatedAt: 0,
  version: 1,
};
const TARGETS = parseTargets([{ origin: 'https://api.openai.com', paths: ['/v1/*'], methods: ['GET', 'POST'] }]);
const MODELS = { method: parseMethod('GET'), url: parseUrl('https://api.openai.com/v1/models?limit=2') };

const contextOf = (auth: AuthContext): Context => ({ auth, requestId: 'r', remoteAddr: null });
const ADMIN = contextOf({ kind: 'admin' });
const AGENT = contextOf({ kind: 'session', tokenHash: SESSION, agentName: CI });
const HOLDER = contextOf({ kind: 'lease', tokenHash: LEASE_TOKEN, agentName: CI });

/** A batch on the state: later operations see the changes of earlier ones. */
class Batch {
  readonly state: BatchState;
  seq = 0;
  now = NOW;

  constructor(actions: readonly string[] = ['use'], resources: readonly string[] = ['openai/*']) {
    const agent = { ...agentOf('ci', 'k'), id: 'a' as AgentId };
    const draft = Policy.parse({ name: 'p', principal: 'agent:ci', resources, actions });
    const loaded = new LoadedRows();
    loaded.rows.session.set(SESSION, {
      tokenHash: SESSION,
      agentId: agent.id,
      issuedAt: 0,
      expiresAt: NOW + 1000_000,
      endsAt: null,
    });
    loaded.rows.credential.set(PATH, CREDENTIAL);
    loaded.putVersion(CREDENTIAL.id, {
      version: 1,
      type: CREDENTIAL.type,
      createdAt: 0,
      content: new Secret('sk-hidden'),
    });
    const control = new ControlState([agent], [{ ...draft, createdAt: 0 }]);
    this.state = new BatchState(control, loaded, { adminMayRetrieve: true, versionsKept: 10 });
  }

  pass(ms: number): void {
    this.now += ms;
  }

  decide<R>(operation: Operation<R>): Outcome<R> {
    this.seq += 1;
    const ids = { entryId: `entry ${this.seq}` as EntryId, newId: () => `id ${this.seq}` };
    const outcome = operation.decide(this.state, { now: this.now, seq: this.seq, ...ids });
    for (const change of outcome.changes) {
      this.state.apply(change);
      // A later batch would load it.
      if (change.kind === 'addLease') this.state.loaded.leases.set(change.lease.id, change.lease);
    }
    return outcome;
  }

  putTargets(): void {
    const draft = { path: PATH, service: null, allowedTargets: TARGETS, placement: { kind: 'bearer' as const } };
    assert.ok('reply' in this.decide(putTargets(ADMIN, draft)).response);
  }

  use(context = AGENT, request = MODELS): Outcome<AdmittedRequest | ApprovalPending> {
    return this.decide(startUse(context, { path: PATH, request, ttlSeconds: null, purpose: 'a report' }));
  }

  /** The reply, with its value. */
  started(context = AGENT): AdmittedRequest {
    const { response } = this.use(context);
    assert.ok('decrypt' in response, JSON.stringify(response));
    const { content, reply } = response.decrypt;
    assert.ok(content instanceof Secret);
    return decided(reply(content));
  }

  issueLease(): Lease {
    const request = { path: PATH, ttlSeconds: null, purpose: null, tokenHashOf: () => LEASE_TOKEN };
    const { response } = this.decide(issueUseLease(AGENT, request));
    assert.ok('reply' in response);
    return response.reply.lease;
  }

  /** Why the use must be cut. */
  cut(started: AdmittedRequest, context = AGENT): unknown {
    const { leaseId, approvalId } = started;
    const { response, entry } = this.decide(
      checkUse({ leaseId, path: PATH, request: MODELS, approvalId }, context.auth),
    );
    assert.equal(entry, null);
    return 'reply' in response ? response.reply : response;
  }
}

const reasonOfEntry = ({ entry }: Outcome<unknown>) => (entry === null ? null : resultFields(entry).reason);
const errorOf = ({ response }: Outcome<unknown>) => ('denial' in response ? toApiError(response.denial) : null);

test('a use is recorded with its method, host and path, and gets a lease of its kind', () => {
  const batch = new Batch();
  batch.putTargets();
  const { entry, changes } = batch.use();
  assert.equal(entry?.eventType, 'credential.use');
  assert.equal(entry?.result, 'allowed');
  assert.equal(entry?.reason, 'purpose: "a report"');
  assert.deepEqual(entry?.use, { method: 'GET', host: 'api.openai.com', target_path: '/v1/models' });
  const [change] = changes;
  assert.ok(change?.kind === 'addLease' && changes.length === 1);
  assert.equal(change.lease.kind, 'use');
  assert.equal(change.lease.expiresAt, NOW + 300_000);
  const { value, target, placement } = batch.started();
  assert.equal(value.reveal(), 'sk-hidden');
  assert.deepEqual([target, placement], [TARGETS[0], { kind: 'bearer' }]);
});

test('retrieve does not imply use, nor the reverse', () => {
  const retrieving = new Batch(['retrieve']);
  retrieving.putTargets();
  assert.equal(errorOf(retrieving.use())?.code, 'ACCESS_DENIED');
  const using = new Batch(['use']);
  const request = { path: PATH, version: null, ttlSeconds: null };
  assert.equal(errorOf(using.decide(retrieve(AGENT, request)))?.code, 'ACCESS_DENIED');
});

test('a request that no target matches is denied, and recorded with what differs', () => {
  const batch = new Batch();
  batch.putTargets();
  for (const [method, url, lacks] of [
    ['GET', 'https://evil.example.com/v1/models', 'host'],
    ['GET', 'https://api.openai.com/v2/models', 'path'],
    ['DELETE', 'https://api.openai.com/v1/models', 'method'],
  ] as const) {
    const outcome = batch.use(AGENT, { method: parseMethod(method), url: parseUrl(url) });
    assert.equal(errorOf(outcome)?.code, 'ACCESS_DENIED');
    assert.equal(reasonOfEntry(outcome), `no target of the credential has this ${lacks}`);
    assert.deepEqual(outcome.changes, []);
  }
});

test('a credential without targets, or with those of an earlier one, cannot be used', () => {
  const batch = new Batch();
  assert.match(errorOf(batch.use())?.message ?? '', /no targets/);
  batch.putTargets();
  batch.state.loaded.rows.credential.set(PATH, { ...CREDENTIAL, id: 'a later one' as CredentialId });
  batch.state.loaded.putVersion('a later one' as CredentialId, {
    version: 1,
    type: CREDENTIAL.type,
    createdAt: 0,
    content: new Secret('another'),
  });
  assert.match(errorOf(batch.use())?.message ?? '', /no targets/);
});

test('the token of a use lease is good for uses of its credential only', () => {
  const batch = new Batch(['use', 'retrieve'], ['*']);
  batch.putTargets();
  const lease = batch.issueLease();
  const { leaseId } = batch.started(HOLDER);
  assert.equal(leaseId, lease.id);
  const retrieval = batch.decide(retrieve(HOLDER, { path: PATH, version: null, ttlSeconds: null }));
  assert.equal(errorOf(retrieval)?.code, 'ACCESS_DENIED');
  const other = parsePath('openai/other');
  batch.state.loaded.rows.credential.set(other, { ...CREDENTIAL, path: other });
  batch.state.loaded.rows.targets.set(other, {
    credentialId: CREDENTIAL.id,
    path: other,
    service: null,
    allowedTargets: TARGETS,
    placement: { kind: 'bearer' },
    updatedAt: 0,
  });
  const elsewhere = startUse(HOLDER, { path: other, request: MODELS, ttlSeconds: null, purpose: null });
  assert.equal(reasonOfEntry(batch.decide(elsewhere)), 'the use lease is for another credential');
  batch.now = lease.expiresAt;
  assert.equal(errorOf(batch.use(HOLDER))?.code, 'LEASE_ENDED');
});

test('a running use goes on until its lease, caller, grant or target ends', () => {
  const ends: Readonly<Record<string, readonly [(batch: Batch) => void, unknown]>> = {
    nothing: [() => undefined, null],
    'the lease expires': [(batch) => batch.pass(300_000), 'expired'],
    'the targets change': [(batch) => batch.putTargets(), 'revoked'],
    'the targets are deleted': [(batch) => void batch.decide(deleteTargets(ADMIN, PATH)), 'revoked'],
    'the credential is deleted': [(batch) => void batch.decide(remove(ADMIN, PATH)), 'revoked'],
    'the policy is deleted': [
      (batch) =>
        batch.state.apply(
          removeRow('policy', Policy.parse({ name: 'p', principal: 'agent:ci', resources: ['*'], actions: ['use'] })),
        ),
      'revoked',
    ],
    'the session ends': [
      (batch) => batch.state.apply(removeRow('session', { tokenHash: SESSION, issuedAt: NOW })),
      'revoked',
    ],
    'the agent is deregistered': [
      (batch) => batch.state.apply(removeRow('agent', { id: 'a' as AgentId, name: CI })),
      'revoked',
    ],
  };
  for (const [name, [end, expected]] of Object.entries(ends)) {
    const batch = new Batch();
    batch.putTargets();
    const started = batch.started();
    assert.equal(batch.cut(started), null, name);
    end(batch);
    assert.equal(batch.cut(started), expected, name);
  }
});

test('the targets of a credential do not end its other leases', () => {
  const batch = new Batch(['retrieve', 'use']);
  const request = { path: PATH, version: null, ttlSeconds: null };
  const [added] = batch.decide(retrieve(AGENT, request)).changes;
  assert.ok(added?.kind === 'addLease');
  batch.putTargets();
  assert.equal(batch.state.lease(added.lease.id)?.revokedAt, null);
});

test('a result has the id of its intent, and ends the lease that was issued for it', () => {
  const batch = new Batch();
  batch.putTargets();
  const started = batch.started();
  const result = { status: 200, bytes_in: 0, bytes_out: 12, redactions: 1, ended: 'complete' as const };
  const context = { auth: AGENT.auth, requestId: 'r', remoteAddr: null };
  const outcome = batch.decide(endUse(started, context, result));
  assert.equal(outcome.entry?.eventType, 'credential.use_result');
  assert.equal(outcome.entry?.completes, started.entryId);
  assert.deepEqual(outcome.entry?.use, result);
  assert.deepEqual(outcome.changes, [{ kind: 'revokeLease', id: started.leaseId, revokedAt: NOW }]);
  assert.deepEqual(batch.decide(endUse(started, context, result)).changes, []);
});

test('a result does not end the lease with the token that the request was made with', () => {
  const batch = new Batch();
  batch.putTargets();
  const started = batch.started();
  const result = { status: 200, bytes_in: 0, bytes_out: 12, redactions: 1, ended: 'complete' as const };
  assert.deepEqual(batch.decide(endUse(started, HOLDER, result)).changes, []);
});
