// Properties of every history, checked by its log and its responses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { runs } from '../../kit/property.ts';
import { ACTIONS, histories, PATHS } from './histories.ts';
import { type Happening, play, type World } from './world.ts';

/** Holds after every history; `claim` asserts. */
function always(what: string, claim: (world: World) => void): void {
  test(what, () => {
    fc.assert(
      fc.property(histories, (history) => claim(play(history))),
      runs(80, 1000),
    );
  });
}

const isAllowed = ({ entry }: Happening, event: string): boolean =>
  entry?.eventType === event && entry.result === 'allowed';

always('simulate and a real retrieval always agree, on the policy and on the time', (world) => {
  for (const [at, token] of world.tokens.slice(0, 3).entries()) {
    for (const path of PATHS) {
      const by = at + 5;
      const real = world.peek({ kind: 'retrieve', by, path, version: null, ttl: null });
      if (real.code === 'UNAUTHENTICATED' || real.code === 'SESSION_EXPIRED') continue;
      assert.equal(real.ask.auth, token);
      const question = { agent: token.agentName, path, action: 'retrieve' };
      for (const asker of [0, by]) {
        const { reply } = world.peek({ kind: 'simulate', by: asker, ...question });
        const { allowed, policyName, leaseTtlSeconds } = reply as Record<string, unknown>;
        assert.equal(allowed, real.code !== 'ACCESS_DENIED');
        assert.equal(policyName, real.entry?.policyName);
        if (real.code !== 'OK') continue;
        const { expiresAt } = real.reply as { expiresAt: number };
        assert.equal(expiresAt, world.now + Number(leaseTtlSeconds) * 1000);
      }
    }
  }
});

always('simulate and storing, looking and deleting agree as well', (world) => {
  const [token] = world.tokens;
  if (token === undefined) return;
  for (const path of PATHS) {
    const real = [
      world.peek({ kind: 'retrieve', by: 5, path, version: null, ttl: null }),
      world.peek({ kind: 'look', by: 5, path }),
      world.peek({ kind: 'store', by: 5, path, type: null, description: null, onlyIfNew: false }),
      world.peek({ kind: 'remove', by: 5, path }),
    ];
    for (const [at, action] of ACTIONS.entries()) {
      const code = real[at]?.code;
      if (code === 'UNAUTHENTICATED' || code === 'SESSION_EXPIRED') continue;
      const { reply } = world.peek({ kind: 'simulate', by: 0, agent: token.agentName, path, action });
      assert.equal((reply as { allowed: boolean }).allowed, code !== 'ACCESS_DENIED', `${action} ${path}`);
    }
  }
});

always('after the entry of a policy’s deletion nothing is granted by it', ({ happened }) => {
  const standing = new Set<string>(['builtin:admin']);
  for (const each of happened) {
    const name = each.entry?.resource.replace('policy:', '') ?? '';
    if (isAllowed(each, 'policy.create') || isAllowed(each, 'policy.replace')) standing.add(name);
    if (isAllowed(each, 'policy.delete')) standing.delete(name);
    const by = each.entry?.policyName ?? null;
    if (by !== null) assert.ok(standing.has(by), `${by} decided ${each.entry?.eventType}`);
  }
});

always('after the entry of its deregistration an agent does nothing, and its sessions stay invalid', ({ happened }) => {
  const registered = new Set<string>(['admin', 'service']);
  const sessions = new Map<string, string>();
  for (const each of happened) {
    const { ask, entry, code } = each;
    const { auth } = ask;
    if (entry !== null) assert.ok(registered.has(entry.agentName), `${entry.agentName} did ${entry.eventType}`);
    if ('by' in ask.command && auth.kind === 'session') {
      assert.equal(code === 'UNAUTHENTICATED', !sessions.has(auth.tokenHash), JSON.stringify(ask));
    }
    const name = entry?.resource.replace('agent:', '') ?? '';
    if (isAllowed(each, 'agent.register')) registered.add(name);
    if (isAllowed(each, 'auth.verify')) sessions.set(ask.fresh, name);
    if (isAllowed(each, 'session.end') && auth.kind === 'session') sessions.delete(auth.tokenHash);
    if (!isAllowed(each, 'agent.deregister')) continue;
    registered.delete(name);
    for (const [token, agent] of sessions) if (agent === name) sessions.delete(token);
  }
});

always(
  'after the entry of a credential’s deletion its path holds nothing, until something is stored there',
  ({ happened }) => {
    const paths = new Set<string>();
    for (const each of happened) {
      const { entry, code, ask } = each;
      if (entry === null) continue;
      if (ask.command.kind === 'retrieve' || ask.command.kind === 'look') {
        if (code === 'OK') assert.ok(paths.has(entry.resource), `${entry.resource} was read`);
      }
      if (isAllowed(each, 'credential.store')) paths.add(entry.resource);
      if (isAllowed(each, 'credential.delete')) paths.delete(entry.resource);
    }
  },
);

always('a lease that has ended, by its time or by any entry that revokes it, is never renewed', ({ happened }) => {
  const alive = new Map<string, { agent: string; path: string; until: number }>();
  for (const each of happened) {
    const { entry, code, ask, reply } = each;
    if (entry === null) continue;
    const { resource, leaseId } = entry;
    const end = (isMeant: (lease: { agent: string; path: string }) => boolean) => {
      for (const [id, lease] of alive) if (isMeant(lease)) alive.delete(id);
    };
    if (isAllowed(each, 'credential.retrieve') && leaseId !== null) {
      alive.set(leaseId, { agent: entry.agentName, path: resource, until: (reply as { expiresAt: number }).expiresAt });
    }
    if (isAllowed(each, 'lease.renew') && leaseId !== null) {
      const lease = alive.get(leaseId);
      assert.ok(lease !== undefined && ask.now < lease.until, `${leaseId} was renewed`);
      lease.until = (reply as { expiresAt: number }).expiresAt;
    }
    if (isAllowed(each, 'lease.revoke') && leaseId !== null) alive.delete(leaseId);
    if (ask.command.kind === 'revokeMany' && code === 'OK') {
      const { agent, path } = ask.command;
      const own = ask.auth.kind === 'session' ? ask.auth.agentName : 'admin';
      const holder = agent === 'own' ? own : agent;
      end((lease) => (holder === null || lease.agent === holder) && (path === null || lease.path === path));
    }
    if (isAllowed(each, 'agent.deregister')) end(({ agent }) => `agent:${agent}` === resource);
    if (isAllowed(each, 'credential.delete')) end(({ path }) => path === resource);
  }
});

always('an agent never sees, renews or revokes another’s lease', ({ happened, shelf }) => {
  const holders = new Map(shelf.leases().map((lease) => [lease.id as string, lease.agentId as string]));
  for (const { ask, changes, code, reply } of happened) {
    const { auth, command } = ask;
    if (auth.kind === 'admin' || !('by' in command)) continue;
    const owner = happened.find((each) => each.ask.fresh === auth.tokenHash && each.ask.command.kind === 'verify')?.ask
      .checked?.agentId;
    for (const change of changes) {
      if (change.kind === 'renewLease' || change.kind === 'revokeLease') assert.equal(holders.get(change.id), owner);
      if (change.kind === 'addLease') assert.equal(change.lease.agentId, owner);
      if (change.kind === 'revokeMatching' && command.kind === 'revokeMany')
        assert.equal(change.revocation.agentId, owner);
    }
    if (command.kind === 'readLease' && code === 'OK') assert.equal(holders.get(ask.lease), owner);
    if (command.kind === 'listLeases' && code === 'OK') {
      for (const id of reply as string[]) assert.equal(holders.get(id), owner);
    }
  }
});

always('a challenge opens one session at most, at its first try and in its time alone', ({ happened }) => {
  const tried = new Set<string>();
  for (const { ask, code } of happened) {
    if (ask.command.kind !== 'verify') continue;
    const { id, expiresAt, boundTo } = ask.challenge;
    if (code === 'OK') {
      assert.equal(tried.has(id), false, 'a spent challenge was taken');
      assert.ok(ask.now < expiresAt, 'an expired challenge was taken');
      assert.ok(boundTo !== null && ask.checked?.isValid === true && ask.checked.agentId === boundTo);
    }
    tried.add(id);
  }
});

always(
  'accesses are counted exactly: as many as the log holds since the credential was made',
  ({ happened, shelf }) => {
    const counts = new Map<string, number>();
    for (const each of happened) {
      const path = each.entry?.resource ?? '';
      if (isAllowed(each, 'credential.store') && !counts.has(path)) counts.set(path, 0);
      if (isAllowed(each, 'credential.delete')) counts.delete(path);
      if (isAllowed(each, 'credential.retrieve')) counts.set(path, (counts.get(path) ?? 0) + 1);
    }
    const kept = shelf.credentials.map(({ path, accessCount }) => [path, accessCount] as const);
    assert.deepEqual(new Map<string, number>(kept), counts);
  },
);

const UNRECORDED = new Set(['simulate', 'readLease', 'listLeases', 'readSession', 'readPolicy', 'readAudit']);

always('what is to be recorded has exactly one entry, and what is not has none', ({ happened }) => {
  const registered = new Set<string>();
  for (const each of happened) {
    const { ask, code, entry, changes } = each;
    const { command } = ask;
    if (entry === null)
      assert.ok(
        changes.every(({ kind }) => kind === 'consumeChallenge'),
        'a change was not recorded',
      );
    if (code === 'UNAUTHENTICATED' || code === 'SESSION_EXPIRED') assert.equal(entry, null);
    else if (UNRECORDED.has(command.kind)) assert.equal(entry !== null, code === 'ACCESS_DENIED');
    else if (command.kind === 'verify') {
      assert.equal(entry !== null, ask.challenge.boundTo !== null && registered.has(command.name));
    } else assert.notEqual(entry, null, `${command.kind} ${code}`);
    if (entry !== null && command.kind !== 'start') assert.equal(entry.requestId, `request ${ask.fresh}`);
    if (command.kind === 'register' && code === 'OK') registered.add(command.name);
    if (command.kind === 'deregister' && code === 'OK') registered.delete(command.name);
  }
});

always('no entry holds a value, a token or a key', ({ happened }) => {
  const secret = /value of|key of|hash-of/;
  const tokens = new Set(happened.filter(({ ask }) => ask.command.kind === 'verify').map(({ ask }) => ask.fresh));
  for (const { entry } of happened) {
    if (entry === null) continue;
    const { requestId, ...rest } = entry;
    const text = JSON.stringify(rest);
    assert.doesNotMatch(text, secret);
    for (const token of tokens) assert.equal(text.includes(token), false);
  }
});
