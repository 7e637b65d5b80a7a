// Rejections because of limits: the first is recorded, the others once an interval with their number; none is lost.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AgentName, TokenHash } from '../../src/core/names.ts';
import type { Context } from '../../src/core/operation.ts';
import { parsePath } from '../../src/core/path.ts';
import { StoreError } from '../../src/store/errors.ts';
import { createPolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy, type PolicyInput } from '../../src/vault/policies/policy.ts';
import { UseLimits } from '../../src/vault/use/use-limits.ts';
import { openVault, readLog, withCommit } from './fixture.ts';

const PATH = parsePath('a/key');
const ADMIN: Context = { auth: { kind: 'admin' }, requestId: 'r', remoteAddr: null };
const INTERVAL_MS = 20;
const LONG_MS = 600_000;

const contextOf = (name: string): Context => ({
  auth: { kind: 'session', tokenHash: name as TokenHash, agentName: name as AgentName },
  requestId: 'request',
  remoteAddr: '192.0.2.1',
});

async function open(t: TestContext, limits: PolicyInput['limits'], intervalMs = LONG_MS) {
  const state = { now: 0, isFailing: false };
  const vault = await openVault(t, {
    inFront: withCommit(async (_batch, commit) => {
      if (state.isFailing) throw new StoreError('unavailable', 'a made-up failure');
      await commit();
    }),
  });
  const draft = Policy.parse({ name: 'p', principal: 'agent:*', resources: ['a/*'], actions: ['use'], limits });
  await vault.ledger.submit(createPolicy.operation(ADMIN, draft));
  const useLimits = new UseLimits(vault.ledger, () => state.now, intervalMs);
  const admit = (name = 'ci') => useLimits.admit(contextOf(name), PATH);
  const reasons = async () =>
    (await readLog(vault.real)).map(({ reason }) => reason).filter((each) => each?.includes('limit'));
  return { state, useLimits, admit, reasons };
}

const LIMITED = { code: 'RATE_LIMITED' };
const OVER = "over the policy's limit of 1 uses per hour";

test('a bucket is earned again over an hour', async (t) => {
  const { state, admit } = await open(t, { uses_per_hour: 2 });
  await admit();
  await admit();
  await assert.rejects(admit(), { ...LIMITED, retryAfterSeconds: 1800 });
  state.now += 1_799_000;
  await assert.rejects(admit(), { ...LIMITED, retryAfterSeconds: 1 });
  state.now += 1000;
  await admit();
  await assert.rejects(admit(), LIMITED);
});

test('a use that was not made is not counted, and one that ended runs no more', async (t) => {
  const { admit } = await open(t, { uses_per_hour: 2, concurrent: 1 });
  const cancelled = await admit();
  await assert.rejects(admit(), { ...LIMITED, message: /1 concurrent/ });
  cancelled.cancel();
  (await admit()).end(10);
  (await admit()).end(10);
  await assert.rejects(admit(), { ...LIMITED, message: /2 uses per hour/ });
});

test('the first rejection is recorded, and the others once an interval with their number', async (t) => {
  const { admit, reasons } = await open(t, { uses_per_hour: 1 }, INTERVAL_MS);
  await admit();
  for (let times = 0; times < 5; times++) await assert.rejects(admit(), LIMITED);
  const counted = (texts: readonly (string | null)[]): number =>
    texts.reduce((sum, text) => sum + Number(/^(\d+) more/.exec(text ?? '')?.[1] ?? 1), 0);
  while (counted(await reasons()) < 5) await new Promise((resolve) => setTimeout(resolve, 5));
  const texts = await reasons();
  assert.equal(texts[0], OVER);
  assert.equal(counted(texts), 5);
  assert.ok(texts.length < 5 || texts.every((text) => text?.endsWith(OVER)));
});

test('a stop records what was only counted', async (t) => {
  const { admit, reasons, useLimits } = await open(t, { uses_per_hour: 1 });
  await admit();
  for (let times = 0; times < 4; times++) await assert.rejects(admit(), LIMITED);
  await admit('other');
  assert.deepEqual(await reasons(), [OVER]);
  await useLimits.stop();
  assert.deepEqual(await reasons(), [OVER, `3 more uses were rejected: ${OVER}`]);
  await useLimits.stop();
  assert.equal((await reasons()).length, 2);
});

test('rejections that could not be recorded stay counted', async (t) => {
  const { admit, reasons, useLimits, state } = await open(t, { uses_per_hour: 1 });
  await admit();
  for (let times = 0; times < 2; times++) await assert.rejects(admit(), LIMITED);
  state.isFailing = true;
  await useLimits.stop();
  state.isFailing = false;
  await useLimits.stop();
  assert.deepEqual(await reasons(), [OVER, `1 more use was rejected: ${OVER}`]);
});
