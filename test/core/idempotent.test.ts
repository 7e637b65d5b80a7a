// Operations with an Idempotency-Key: after a success, repeats return the same reply and do nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BatchState, LoadedRows } from '../../src/core/batch-state.ts';
import { putRow, removeRow } from '../../src/core/change.ts';
import { ControlState } from '../../src/core/control.ts';
import { resultFields, toApiError } from '../../src/core/denials.ts';
import {
  IDEMPOTENCY_TTL_MS,
  type Idempotency,
  type IdempotencyId,
  type IdempotencyRecord,
  type JsonSerializable,
  parseIdempotencyKey,
} from '../../src/core/idempotency.ts';
import type { AgentId, AgentName, CredentialId, EntryId, TokenHash } from '../../src/core/names.ts';
import type { Context, Operation } from '../../src/core/operation.ts';
import { parsePath } from '../../src/core/path.ts';
import { type Credential, Secret } from '../../src/vault/credentials/credential.ts';
import { store } from '../../src/vault/credentials/credential-operations.ts';
import { retrieve } from '../../src/vault/credentials/retrieve.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import type { Session } from '../../src/vault/sessions/session.ts';
import { agentOf } from './approvals/world.ts';
import { refusal } from './refusals.ts';

const NOW = Date.UTC(2026, 0, 1);
const ONE: Idempotency = { id: 'id of one' as IdempotencyId, requestMac: 'mac of one' };
const HASH = 'hash' as TokenHash;

const admin = (idempotency?: Idempotency): Context => ({
  auth: { kind: 'admin' },
  requestId: 'r',
  remoteAddr: null,
  ...(idempotency === undefined ? {} : { idempotency }),
});

const agent = (idempotency: Idempotency): Context => ({
  requestId: 'r',
  remoteAddr: null,
  idempotency,
  auth: { kind: 'session', tokenHash: HASH, agentName: 'ci' as AgentName },
});

/** A batch state with the agent of that id, logged in, and a policy that lets it store. */
function known({ agentId = 'agent-1', expiresAt = NOW + 1e9 } = {}): BatchState {
  const draft = Policy.parse({ name: 'p', principal: 'agent:ci', resources: ['prod/*'], actions: ['store'] });
  const control = new ControlState([{ ...agentOf('ci', 'key'), id: agentId as AgentId }], [{ ...draft, createdAt: 0 }]);
  const loaded = new LoadedRows();
  const session: Session = { tokenHash: HASH, agentId: agentId as AgentId, issuedAt: 0, expiresAt, endsAt: null };
  loaded.rows.session.set(HASH, session);
  return new BatchState(control, loaded, { adminMayRetrieve: true, versionsKept: 10 });
}

function storing(context: Context, path = 'prod/key', onlyIfNew = false): Operation<Credential> {
  const more = { type: null, description: null, onlyIfNew };
  return store(context, { path: parsePath(path), value: new Secret('hidden'), ...more });
}

/** Decides, and applies the changes to the state, as a batch does. */
function decide<R>(operation: Operation<R>, workspace: BatchState, now = NOW) {
  const outcome = operation.decide(workspace, { now, seq: 7, entryId: 'entry' as EntryId, newId: () => 'fresh' });
  for (const change of outcome.changes) workspace.apply(change);
  const { response, entry, changes } = outcome;
  return {
    reply: 'reply' in response ? response.reply : null,
    error: 'denial' in response ? toApiError(response.denial) : null,
    result: entry === null ? null : resultFields(entry).result,
    changes,
    kinds: changes.map((change) => ('resource' in change ? `${change.kind} ${change.resource}` : change.kind)),
  };
}

const DONE = ['put credential', 'addVersion', 'put reply'];

test('a success saves its reply with its changes, for 24 hours, under its caller’s immutable id', () => {
  for (const [context, agentId] of [
    [admin(ONE), 'admin'],
    [agent(ONE), 'agent-1'],
  ] as const) {
    const { reply, changes, kinds, result } = decide(storing(context), known());
    assert.deepEqual([kinds, result], [DONE, 'allowed']);
    const kept: IdempotencyRecord = { ...ONE, agentId: agentId as AgentId, reply: JSON.stringify(reply), expiresAt: 0 };
    assert.deepEqual(changes.at(-1), {
      kind: 'put',
      resource: 'reply',
      row: { ...kept, expiresAt: NOW + 86_400_000 },
    });
    assert.doesNotMatch(JSON.stringify(changes.at(-1)), /hidden|secret/);
  }
});

test('a repeat returns the same reply, changes nothing and has no entry, in the same batch and in a later one', () => {
  const workspace = known();
  const first = decide(storing(agent(ONE)), workspace);
  for (const now of [NOW, NOW + 1, NOW + IDEMPOTENCY_TTL_MS - 1]) {
    const repeat = decide(storing(agent(ONE)), workspace, now);
    assert.deepEqual(repeat.reply, first.reply);
    assert.deepEqual([repeat.kinds, repeat.result], [[], null]);
  }
});

test('an expired reply is ignored', () => {
  const workspace = known({ expiresAt: NOW + 2 * IDEMPOTENCY_TTL_MS });
  decide(storing(agent(ONE)), workspace);
  const later = decide(storing(agent(ONE)), workspace, NOW + IDEMPOTENCY_TTL_MS);
  assert.deepEqual([later.kinds, later.reply?.version], [DONE, 2]);
  const repeat = decide(storing(agent(ONE)), workspace, NOW + IDEMPOTENCY_TTL_MS + 1);
  assert.deepEqual([repeat.kinds, repeat.reply?.version], [[], 2]);
});

test('a different request with the key gets a 400 that names the header and the rule, and changes and records nothing', () => {
  const workspace = known();
  const first = decide(storing(agent(ONE)), workspace);
  const other = decide(storing(agent({ ...ONE, requestMac: 'mac of two' }), 'prod/other'), workspace);
  assert.equal(other.error?.code, 'INVALID_REQUEST');
  assert.match(other.error?.message ?? '', /^Idempotency-Key: \w/);
  assert.deepEqual([other.kinds, other.result], [[], null]);
  assert.deepEqual(decide(storing(agent(ONE)), workspace).reply, first.reply);
});

test('another key is another request', () => {
  const workspace = known();
  decide(storing(agent(ONE)), workspace);
  const other = decide(storing(agent({ ...ONE, id: 'id of two' as IdempotencyId })), workspace);
  assert.deepEqual([other.kinds, other.reply?.version], [DONE, 2]);
});

test('a rejection is not saved: a repeat is decided again, and its success is saved', () => {
  const workspace = known();
  decide(storing(admin()), workspace);
  const refused = decide(storing(admin(ONE), 'prod/key', true), workspace);
  assert.deepEqual([refused.error?.code, refused.kinds, refused.result], ['ALREADY_EXISTS', [], 'denied']);
  const again = decide(storing(admin(ONE), 'prod/key', true), workspace);
  assert.deepEqual([again.error?.code, again.result], ['ALREADY_EXISTS', 'denied']);
  workspace.apply(removeRow('credential', { id: 'fresh' as CredentialId, path: parsePath('prod/key') }));
  assert.deepEqual(decide(storing(admin(ONE), 'prod/key', true), workspace).kinds, DONE);
});

test('an agent registered again under the name does not get the earlier agent’s reply, and its own is saved', () => {
  const before = known();
  decide(storing(agent(ONE)), before);
  const after = known({ agentId: 'agent-2' });
  const kept = before.idempotencyRecord(ONE.id);
  assert.ok(kept);
  after.apply(putRow('reply', kept));
  const { kinds, changes } = decide(storing(agent({ ...ONE, requestMac: 'another' })), after);
  assert.deepEqual(kinds, DONE);
  const change = changes.at(-1);
  assert.equal(change?.kind === 'put' && change.resource === 'reply' && change.row.agentId, 'agent-2');
});

test('an ended session gets no saved reply', () => {
  const workspace = known({ expiresAt: NOW + 10 });
  decide(storing(agent(ONE)), workspace);
  assert.equal(decide(storing(agent(ONE)), workspace, NOW + 10).error?.code, 'SESSION_EXPIRED');
  workspace.apply(removeRow('session', { tokenHash: HASH, issuedAt: NOW }));
  assert.equal(decide(storing(agent(ONE)), workspace).error?.code, 'UNAUTHENTICATED');
});

test('without a key no reply is saved', () => {
  assert.deepEqual(decide(storing(admin()), known()).kinds, ['put credential', 'addVersion']);
});

test('an operation with a key also reads the saved reply, next to its rows and its session', () => {
  const { reads } = storing(admin());
  assert.deepEqual(storing(admin(ONE)).reads, { ...reads, reply: ONE.id });
  assert.deepEqual(storing(agent(ONE)).reads, { ...reads, session: HASH, reply: ONE.id });
});

test('the reply of a retrieval is never saved', () => {
  const workspace = known();
  decide(storing(admin()), workspace);
  const request = { path: parsePath('prod/key'), version: null, ttlSeconds: null };
  const { kinds } = decide(retrieve(admin(ONE), request), workspace);
  assert.deepEqual(kinds, ['addLease', 'incrementAccessCount']);
});

test('a type with a secret, or anything but plain data, cannot be saved', () => {
  type Can<R> = [R] extends [JsonSerializable<R>] ? true : false;
  // The compiler tests this.
  const plain: [Can<Credential>, Can<readonly string[]>, Can<{ a: { b: number | null }[] } | null>] = [
    true,
    true,
    true,
  ];
  const secret: [Can<Secret>, Can<{ a: Secret[] }>] = [false, false];
  const other: [Can<Date>, Can<Uint8Array>, Can<Map<string, string>>, Can<{ a: undefined }>] = [
    ...([false, false, false, false] as const),
  ];
  assert.deepEqual([plain.length, secret.length, other.length], [3, 2, 4]);
});

test('the grammar of idempotency keys', () => {
  for (const text of ['a', '!', '~', 'k'.repeat(255), '"8e03978e-40d5-43dd-bc93-6894a57f9324"', 'a,b', ';\\/'])
    assert.equal(parseIdempotencyKey(text), text);
  const refused = ['', 'k'.repeat(256), 'a b', ' a', 'a\t', 'a\n', '\u007f', 'é', '\u0000', 'a\u0000', '🔑', '\u00a0'];
  for (const text of refused) refusal('Idempotency-Key', () => parseIdempotencyKey(text), text);
});
