// Cases that random histories do not reach: values that do not decrypt, keys that change, and the text of errors.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BatchState, LoadedRows } from '../../src/core/batch-state.ts';
import { removeRow } from '../../src/core/change.ts';
import { ControlState } from '../../src/core/control.ts';
import { errorOf, messageOf } from '../../src/core/denials.ts';
import {
  type AgentId,
  type ChallengeId,
  type CredentialId,
  type EntryId,
  type PublicKey,
  parseAgentName,
  type TokenHash,
} from '../../src/core/names.ts';
import { operation, succeeded } from '../../src/core/operation.ts';
import { parsePath } from '../../src/core/path.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { retrieve } from '../../src/vault/credentials/retrieve.ts';
import { addKeySlot } from '../../src/vault/keys/key-operations.ts';
import type { KeySlot, SlotId, SlotName } from '../../src/vault/keys/keyset.ts';
import { parseTtl } from '../../src/vault/policies/policy.ts';
import {
  CHALLENGE_LIFE_MS,
  type LoginRequest,
  openSession,
  SESSION_LIFE_MS,
} from '../../src/vault/sessions/session-operations.ts';
import { decided } from '../kit/decided.ts';
import { runs } from '../kit/property.ts';
import type { Command } from './history/commands.ts';
import { histories } from './history/histories.ts';
import { plainState } from './history/observing.ts';
import { play, World } from './history/world.ts';
import { intent, result } from './intents.ts';

const SETTINGS = { adminMayRetrieve: true, versionsKept: 10 };
const BY_ADMIN = { auth: { kind: 'admin' }, requestId: 'r', remoteAddr: null } as const;
const LEASE = '0190c5f2-7e3a-7b1c-8d2e-0123456789ab';
const PATH = parsePath('prod/db');
const MOMENT = { now: 0, seq: 1, entryId: 'entry' as EntryId, newId: () => LEASE };

const store = (path: string, type: string | null): Command => ({
  kind: 'store',
  by: 0,
  path,
  type,
  description: null,
  onlyIfNew: false,
});

/** A state with two versions of a credential, of different types. */
function worldWithVersions(): World {
  return play({ ...SETTINGS, turns: [{ wait: { ms: 0 }, commands: [store(PATH, 'token'), store(PATH, 'password')] }] });
}

function retrieved(world: World, version: number | null) {
  const operation = retrieve(BY_ADMIN, { path: PATH, version, ttlSeconds: parseTtl(5, 'ttl') });
  const known = new BatchState(world.control, world.shelf.load([operation]), SETTINGS);
  const { response } = operation.decide(known, {
    now: world.now,
    seq: 3,
    entryId: 'entry' as EntryId,
    newId: () => LEASE,
  });
  return 'decrypt' in response ? response.decrypt : null;
}

test('a value that does not authenticate is an error in the log, and is neither returned nor counted', () => {
  const decrypt = retrieved(worldWithVersions(), null);
  assert.ok(decrypt);
  const { response, entry, changes } = decrypt.onFailure();
  assert.ok('denial' in response);
  assert.equal(errorOf(response.denial), 'INTEGRITY_FAILURE');
  assert.deepEqual(changes, []);
  assert.deepEqual([entry?.eventType, entry?.result, entry?.leaseId], ['credential.retrieve', response.denial, null]);
});

test('a retrieval issues a lease with a new id of its batch, and replies with the value', () => {
  const decrypt = retrieved(worldWithVersions(), null);
  assert.ok(decrypt);
  const reply = decided(decrypt.reply(new Secret('opened')));
  assert.deepEqual([reply.value.reveal(), reply.leaseId, reply.path], ['opened', LEASE, PATH]);
});

test('a value is bound to its credential’s id, its path, its version and its type when it was stored', () => {
  const world = worldWithVersions();
  const [credential] = world.shelf.credentials;
  assert.ok(credential);
  const bound = { credentialId: credential.id, path: PATH };
  assert.deepEqual(retrieved(world, null)?.associatedData, { ...bound, type: 'password', version: 2 });
  assert.deepEqual(retrieved(world, 2)?.associatedData, { ...bound, type: 'password', version: 2 });
  assert.deepEqual(retrieved(world, 1)?.associatedData, { ...bound, type: 'token', version: 1 });
});

test('a challenge is valid for 60 s, a session for an hour', () => {
  assert.equal(CHALLENGE_LIFE_MS, 60_000);
  assert.equal(SESSION_LIFE_MS, 3_600_000);
});

test('a signature that was checked with another key, or for another agent of the name, opens no session', () => {
  const world = play({
    ...SETTINGS,
    turns: [{ wait: { ms: 0 }, commands: [{ kind: 'register', by: 0, name: 'a', description: '' }] }],
  });
  const [agent] = world.control.agents();
  assert.ok(agent);
  const { id, publicKey } = agent;
  const request: LoginRequest = {
    agentName: parseAgentName('a'),
    challengeId: LEASE as ChallengeId,
    challengeExpiresAt: world.now + 1,
    wasIssuedToAgent: true,
    verifiedAgainst: { agentId: id, publicKey },
    isSignatureValid: true,
    tokenHash: 'hash' as TokenHash,
  };
  const outcomeOf = (fields: Partial<LoginRequest>) => {
    const operation = openSession(BY_ADMIN, { ...request, ...fields });
    const known = new BatchState(world.control, world.shelf.load([operation]), SETTINGS);
    return operation.decide(known, { now: world.now, seq: 2, entryId: 'entry' as EntryId, newId: () => LEASE });
  };
  const refused: Partial<LoginRequest>[] = [
    { verifiedAgainst: { agentId: 'another' as AgentId, publicKey } },
    { verifiedAgainst: { agentId: id, publicKey: 'another' as PublicKey } },
    { verifiedAgainst: null },
    { isSignatureValid: false },
    { wasIssuedToAgent: false },
    { challengeExpiresAt: world.now },
    { agentName: parseAgentName('A') },
  ];
  assert.ok('reply' in outcomeOf({}).response);
  const messages = new Set<string>();
  for (const fields of refused) {
    const { response, changes } = outcomeOf(fields);
    assert.ok('denial' in response && errorOf(response.denial) === 'AUTH_FAILED', JSON.stringify(fields));
    assert.ok(changes.every(({ kind }) => kind === 'consumeChallenge'));
    messages.add(messageOf(response.denial));
  }
  assert.equal(messages.size, 1, 'the message tells what failed');
});

test('a caller without a grant cannot distinguish an existing path from a missing one', () => {
  const tries = (path: string): Command[] => [
    { kind: 'retrieve', by: 5, path, version: null, ttl: null },
    { kind: 'look', by: 5, path },
    { kind: 'store', by: 5, path, type: null, description: null, onlyIfNew: true },
    { kind: 'remove', by: 5, path },
  ];
  fc.assert(
    fc.property(histories, fc.constantFrom('p/x', 'q'), (history, path) => {
      const world = play(history);
      const look = () =>
        tries(path).map((command) => {
          const { code, message, entry } = world.peek(command);
          return { code, message, entry: entry && { ...entry, requestId: null } };
        });
      const before = look();
      const exists = world.shelf.credentials.some((credential) => credential.path === path);
      const turnOver: Command = exists ? { kind: 'remove', by: 0, path } : store(path, null);
      world.play({ wait: { ms: 0 }, commands: [turnOver] });
      const after = look();
      for (const [at, answer] of before.entries()) {
        if (answer.code === 'ACCESS_DENIED') assert.deepEqual(after[at], answer);
        assert.equal(after[at]?.code === 'ACCESS_DENIED', answer.code === 'ACCESS_DENIED');
      }
    }),
    runs(60, 1000),
  );
});

test('a decision does not change the state; its changes are data', () => {
  fc.assert(
    fc.property(histories, (history) => {
      const world = new World(history);
      for (const turn of history.turns) {
        const before = plainState(world);
        for (const command of turn.commands) if (command.kind !== 'challenge') world.peek(command);
        assert.deepEqual(plainState(world), before);
        world.play(turn);
      }
    }),
    runs(40, 1000),
  );
});

// An intent is recorded first and its result later: two operations, two entries, one id.

const known = new BatchState(new ControlState([], []), new LoadedRows(), { adminMayRetrieve: true, versionsKept: 10 });
const at = (entryId: string, seq: number) => ({ now: 0, seq, entryId: entryId as EntryId, newId: () => 'id' });

test('an intent replies the id of its entry, and the entry of its result names that id', () => {
  const begun = intent('begin').decide(known, at('first', 1));
  assert.ok('reply' in begun.response);
  assert.equal(begun.response.reply, 'first');
  assert.equal(begun.entry?.completes, undefined);
  const ended = result('end', begun.response.reply, 'error').decide(known, at('second', 2));
  assert.deepEqual([ended.entry?.completes, ended.entry?.result], ['first', 'error']);
});

test('an operation that names no target meets no precondition', () => {
  const context = { ...BY_ADMIN, precondition: () => true };
  const known = new BatchState(new ControlState([], []), new LoadedRows(), SETTINGS);
  const add = operation({ context, permission: 'agent.register', resource: '*' }, () => succeeded(null, null));
  const { response } = add.decide(known, MOMENT);
  assert.deepEqual(response, { denial: { code: 'precondition_failed', current: null } });
});

test('a vault has at most 1,000 key slots, also where several are added in one batch', () => {
  const slot = (number: number): KeySlot => ({
    id: `slot ${number}` as SlotId,
    name: `slot-${number}` as SlotName,
    kind: 'file',
    parameters: {},
    publicKey: '',
    createdAt: 0,
  });
  const known = new BatchState(new ControlState([], []), new LoadedRows(), SETTINGS);
  const add = (number: number) => {
    const { response, changes } = addKeySlot(BY_ADMIN, slot(number)).decide(known, MOMENT);
    for (const change of changes) known.apply(change);
    return 'denial' in response ? response.denial.code : null;
  };
  for (let number = 1; number <= 1000; number += 1) assert.equal(add(number), null);
  assert.equal(add(1001), 'too_many_slots');
});

test('a credential that replaces an altered row is not altered', () => {
  const loaded = new LoadedRows();
  loaded.altered.add(PATH);
  const known = new BatchState(new ControlState([], []), loaded, SETTINGS);
  assert.equal(known.isAltered(PATH), true);
  known.apply(removeRow('credential', { id: 'id' as CredentialId, path: PATH }));
  assert.equal(known.isAltered(PATH), false);
});
