// Key files on a failing file system: a request gets 503 or succeeds, the files follow the log later, and an I/O error
// stops the process. SOURCE: SECURITY.md, P7.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FsAgentKeyStore } from '../../src/server/fs-agent-key-store.ts';
import { deregisterAgent, registerAgent } from '../../src/vault/agents/registration.ts';
import type { AgentKeyStore } from '../../src/vault/ports.ts';
import type { Vault } from '../../src/vault/vault.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { toName } from './agents-fixture.ts';
import { admin, openVault, outcomeOf, readLog, until } from './fixture.ts';
import { keyed } from './retry-fixture.ts';

const register = (vault: Vault, context = admin(), name = 'ci') =>
  registerAgent(vault, context, { name: toName(name), description: '', publicKey: null });

/** A vault whose key files fail with the given system error after `fail(code)`; `fail(null)` ends that. */
async function openFailing(t: TestContext, recoveryIntervalMs?: number) {
  const directory = temporaryDirectory(t);
  const agentsDir = join(directory, 'agents');
  const real = new FsAgentKeyStore(agentsDir);
  let failing: { methods: readonly string[]; code: string } | null = null;
  const keyStore = new Proxy<AgentKeyStore>(real, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      assert.ok(typeof method === 'function');
      return async (...args: unknown[]) => {
        if (failing?.methods.includes(String(name)) === true) {
          // The remains of a system call that fails midway.
          if (name === 'stage') await method.apply(target, args);
          throw Object.assign(new Error('made up'), { code: failing.code });
        }
        return method.apply(target, args);
      };
    },
  });
  const options = recoveryIntervalMs === undefined ? {} : { recoveryIntervalMs };
  const vault = await openVault(t, { directory, keyStore, ...options });
  return {
    vault,
    names: () => [readdirSync(agentsDir).sort(), readdirSync(join(agentsDir, '.pending')).length],
    fail: (methods: readonly string[] | null, code = 'EMFILE') => {
      failing = methods === null ? null : { methods, code };
    },
  };
}

test('a key that cannot be written gives 503, registers nothing and leaves nothing', async (t) => {
  const { vault, names, fail } = await openFailing(t);
  fail(['stage']);
  assert.equal(await outcomeOf(register(vault)), 'UNAVAILABLE');
  assert.deepEqual([names(), await readLog(vault.real)], [[['.pending'], 0], []]);
  fail(null);
  assert.equal(await outcomeOf(register(vault)), 'ok');
  assert.deepEqual(names(), [['.pending', 'ci'], 0]);
});

test('a file that could not be removed is removed later', async (t) => {
  const { vault, names, fail } = await openFailing(t, 5);
  fail(['stage', 'abort', 'remove']);
  assert.equal(await outcomeOf(register(vault)), 'UNAVAILABLE');
  assert.deepEqual(names(), [['.pending'], 1]);
  fail(null);
  await until(() => names()[1] === 0, 'the prepared key is removed');
});

test('a key that cannot be committed gives 503, and a repeat with the same Idempotency-Key finishes the registration', async (t) => {
  const { vault, names, fail } = await openFailing(t);
  fail(['commit']);
  assert.equal(await outcomeOf(register(vault, keyed(vault))), 'UNAVAILABLE');
  assert.equal(await outcomeOf(register(vault, keyed(vault))), 'UNAVAILABLE');
  assert.deepEqual(names(), [['.pending'], 1]);
  fail(null);
  assert.equal(await outcomeOf(register(vault, keyed(vault))), 'ok');
  assert.deepEqual(names(), [['.pending', 'ci'], 0]);
});

test('without a repeat the key is committed later', async (t) => {
  const { vault, names, fail } = await openFailing(t, 5);
  fail(['commit'], 'ENOSPC');
  assert.equal(await outcomeOf(register(vault)), 'UNAVAILABLE');
  fail(null);
  await until(() => names()[1] === 0, 'the key is published');
  assert.deepEqual(names(), [['.pending', 'ci'], 0]);
});

test('a deregistration succeeds although the key file cannot be removed, which is removed later', async (t) => {
  const { vault, names, fail } = await openFailing(t, 5);
  await register(vault);
  fail(['remove']);
  assert.equal(await outcomeOf(deregisterAgent(vault, admin(), toName('ci'))), 'ok');
  assert.deepEqual(names(), [['.pending', 'ci'], 0]);
  fail(null);
  await until(() => names()[0]?.toString() === '.pending', 'the directory is removed');
});

test('a delayed removal keeps the key of an agent registered under the name meanwhile', async (t) => {
  const { vault, names, fail } = await openFailing(t, 5);
  await register(vault);
  await register(vault, admin(), 'other');
  fail(['remove']);
  await deregisterAgent(vault, admin(), toName('ci'));
  await deregisterAgent(vault, admin(), toName('other'));
  const { id } = await register(vault);
  fail(null);
  await until(() => names()[0]?.toString() === '.pending,ci', 'the directory of the other agent is removed');
  assert.equal(readFileSync(join(vault.directory, 'agents', 'ci', 'agent_id'), 'utf8').trim(), id);
});

test('an I/O error stops the process and is not retried', async (t) => {
  for (const method of ['stage', 'commit', 'remove']) {
    const { vault, fail } = await openFailing(t, 1);
    if (method === 'remove') await register(vault);
    fail([method], 'EIO');
    const request = method === 'remove' ? deregisterAgent(vault, admin(), toName('ci')) : register(vault);
    await outcomeOf(request);
    assert.deepEqual(
      vault.broken.map((failure) => `${failure}`),
      ['StoreError: a file of a private key: EIO'],
      method,
    );
  }
});
