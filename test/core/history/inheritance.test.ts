// An agent or credential created again under a name or path inherits nothing. SOURCE: docs/decisions.md, "Agents and
// sessions" and "Credentials".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { statusOf } from '../../../src/vault/leases/lease.ts';
import { runs } from '../../kit/property.ts';
import type { Command } from './commands.ts';
import { histories } from './histories.ts';
import { play } from './world.ts';

const turn = (...commands: Command[]) => ({ wait: { ms: 0 }, commands });

const store = (onlyIfNew: boolean): Command => ({
  kind: 'store',
  by: 0,
  path: 'p/x',
  type: null,
  description: null,
  onlyIfNew,
});
const lend: Command = {
  kind: 'replacePolicy',
  by: 0,
  policy: { name: 'lend', principal: 'agent:a', resources: ['p/x'], actions: ['retrieve'], maxTtlSeconds: 60 },
};

test('an agent registered again does not get the sessions, challenges and leases of its name', () => {
  fc.assert(
    fc.property(histories, fc.boolean(), (history, inOneTurn) => {
      const world = play(history);
      const deregister: Command = { kind: 'deregister', by: 0, name: 'a' };
      const register: Command = { kind: 'register', by: 0, name: 'a', description: '' };
      // Some challenges are also answered before the batch or in the same one.
      const answers: Command[] = [0, 1, 2].map((challenge) => ({
        kind: 'verify',
        name: 'a',
        challenge,
        isSigned: true,
      }));
      world.play(turn({ kind: 'deregister', by: 0, name: 'A' }, register, lend, store(false)));
      world.play(turn({ kind: 'challenge', name: 'a' }));
      world.play(turn({ kind: 'verify', name: 'a', challenge: 0, isSigned: true }));
      world.play(turn({ kind: 'retrieve', by: 2, path: 'p/x', version: null, ttl: null }));
      world.play(turn({ kind: 'challenge', name: 'a' }));
      const tokens = [...world.tokens];
      if (inOneTurn) world.play(turn(deregister, register, ...answers));
      else for (const each of [deregister, register, ...answers]) world.play(turn(each));
      assert.deepEqual(world.tokens, tokens, 'an old challenge opened a session');
      for (const [at, token] of tokens.entries()) {
        if (token.agentName !== 'a') continue;
        const { ask, code } = world.peek({ kind: 'readSession', by: 5 + at });
        assert.equal(ask.auth, token);
        assert.equal(code, 'UNAUTHENTICATED');
      }
      world.play(turn({ kind: 'challenge', name: 'a' }));
      const [login] = world.play(turn({ kind: 'verify', name: 'a', challenge: 0, isSigned: true }));
      assert.equal(login?.code, 'OK');
      const [token] = world.tokens;
      const listed = world.peek({ kind: 'listLeases', by: 2 });
      assert.equal(listed.ask.auth, token);
      assert.deepEqual(listed.reply, []);
      const leases = world.shelf.leases().filter(({ agentName }) => agentName === 'a');
      assert.notEqual(leases.length, 0);
      for (const lease of leases) assert.notEqual(statusOf(lease, world.now), 'active');
      for (const kind of ['readLease', 'renew', 'revoke'] as const) {
        const { ask, code } = world.peek({ kind, by: 2, lease: 0 });
        assert.equal(ask.lease, leases.at(-1)?.id);
        assert.equal(code, 'NOT_FOUND', `${kind} of another's lease under the same name`);
      }
    }),
    runs(80, 1000),
  );
});

test('a credential stored again at a path does not get version, count, description, type or leases of the earlier one', () => {
  fc.assert(
    fc.property(histories, fc.boolean(), (history, inOneTurn) => {
      const world = play({ ...history, adminMayRetrieve: true });
      const before = world.shelf.credentials.find(({ path }) => path === 'p/x');
      const remove: Command = { kind: 'remove', by: 0, path: 'p/x' };
      const [removed, stored] = inOneTurn
        ? world.play(turn(remove, store(true)))
        : [...world.play(turn(remove)), ...world.play(turn(store(true)))];
      assert.equal(removed?.code, before === undefined ? 'NOT_FOUND' : 'OK');
      const { now } = world;
      const made = {
        path: 'p/x',
        type: 'generic',
        description: '',
        createdAt: now,
        updatedAt: now,
        newest: 1,
      };
      assert.deepEqual(stored?.reply, made);
      const versions = [{ version: 1, createdAt: now }];
      assert.deepEqual(world.peek({ kind: 'look', by: 0, path: 'p/x' }).reply, { ...made, versions });
      for (const version of [2, 3, 4]) {
        const old = world.peek({ kind: 'retrieve', by: 0, path: 'p/x', version, ttl: null });
        assert.equal(old.code, 'NOT_FOUND');
      }
      for (const lease of world.shelf.leases()) {
        if (lease.path === 'p/x') assert.notEqual(statusOf(lease, now), 'active');
      }
      assert.equal(world.play(turn({ kind: 'revokeMany', by: 0, agent: null, path: 'p/x' }))[0]?.reply, 0);
    }),
    runs(80, 1000),
  );
});
