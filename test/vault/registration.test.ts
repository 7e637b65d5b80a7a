// Repeated registrations and the files of private keys: each agent has exactly the key that was generated for it.

import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PolicyName } from '../../src/core/names.ts';
import { FsAgentKeyStore } from '../../src/server/fs-agent-key-store.ts';
import { deregisterAgent, registerAgent } from '../../src/vault/agents/registration.ts';
import { createPolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import type { Vault } from '../../src/vault/vault.ts';
import { toName } from './agents-fixture.ts';
import { admin, type OpenedVault, openVault, outcomeOf } from './fixture.ts';
import { keyed, vaultWithLoss } from './retry-fixture.ts';

const keyFile = (vault: OpenedVault, ...parts: string[]) => join(vault.directory, 'agents', ...parts);
const namesIn = (vault: OpenedVault, ...parts: string[]) => readdirSync(keyFile(vault, ...parts)).sort();
const register = (vault: Vault, context = keyed(vault), name = 'ci') =>
  registerAgent(vault, context, { name: toName(name), description: '', publicKey: null });

test('the retry of a registration with unknown outcome commits the key of the first attempt', async (t) => {
  const { vault, lose } = await vaultWithLoss(t);
  lose('after');
  assert.equal(await outcomeOf(register(vault)), 'UNAVAILABLE');
  assert.deepEqual(namesIn(vault), ['.pending']);
  const [pending = ''] = namesIn(vault, '.pending');
  const pem = readFileSync(keyFile(vault, '.pending', pending, 'private_key.pem'), 'utf8');
  const agent = await register(vault);
  assert.equal(agent.id, pending);
  assert.equal(readFileSync(keyFile(vault, 'ci', 'private_key.pem'), 'utf8'), pem);
  assert.deepEqual(namesIn(vault, '.pending'), []);
  assert.deepEqual(await register(vault), agent);
  assert.equal(readFileSync(keyFile(vault, 'ci', 'private_key.pem'), 'utf8'), pem);
});

test('the retry of a registration that was not committed registers, and the key staged first has no effect', async (t) => {
  const { vault, lose } = await vaultWithLoss(t);
  lose('before');
  assert.equal(await outcomeOf(register(vault)), 'UNAVAILABLE');
  const agent = await register(vault);
  assert.equal(readFileSync(keyFile(vault, 'ci', 'agent_id'), 'utf8').trim(), agent.id);
  await new FsAgentKeyStore(keyFile(vault)).recover([agent], async () => false);
  assert.deepEqual([namesIn(vault), namesIn(vault, '.pending')], [['.pending', 'ci'], []]);
});

test('a repeat does not change an agent registered under the name since', async (t) => {
  const { vault, lose } = await vaultWithLoss(t);
  lose('after');
  assert.equal(await outcomeOf(register(vault)), 'UNAVAILABLE');
  const [first = ''] = namesIn(vault, '.pending');
  const kept = join(vault.directory, 'kept');
  cpSync(keyFile(vault, '.pending', first), kept, { recursive: true });
  await deregisterAgent(vault, admin(), toName('ci'));
  assert.deepEqual(namesIn(vault, '.pending'), [], 'the pending key of a deleted agent remains');
  const second = await register(vault, admin());
  const pem = readFileSync(keyFile(vault, 'ci', 'private_key.pem'), 'utf8');
  // The directory of another node, which has not applied the deletion.
  mkdirSync(keyFile(vault, '.pending'), { recursive: true });
  cpSync(kept, keyFile(vault, '.pending', first), { recursive: true });
  assert.equal((await register(vault)).id, first);
  assert.equal(readFileSync(keyFile(vault, 'ci', 'agent_id'), 'utf8').trim(), second.id);
  assert.equal(readFileSync(keyFile(vault, 'ci', 'private_key.pem'), 'utf8'), pem);
});

test('committing a key again, or one that was never staged, changes no directory', async (t) => {
  const vault = await openVault(t);
  const { id, name } = await register(vault);
  const pem = readFileSync(keyFile(vault, 'ci', 'private_key.pem'), 'utf8');
  await vault.agentKeys.commit(id, name);
  await vault.agentKeys.commit('01890000-0000-7000-8000-000000000001' as typeof id, name);
  assert.equal(readFileSync(keyFile(vault, 'ci', 'private_key.pem'), 'utf8'), pem);
  assert.equal(existsSync(keyFile(vault, 'ci', 'agent_id')), true);
});

test('a registration that is rejected because its Idempotency-Key was used before leaves no file', async (t) => {
  const vault = await openVault(t);
  const policy = Policy.parse({ name: 'p', principal: 'agent:*', resources: ['a'], actions: ['retrieve'] });
  assert.equal(
    (await vault.ledger.submit(createPolicy.operation(keyed(vault, 'k', 'one'), policy))).name,
    'p' as PolicyName,
  );
  assert.equal(await outcomeOf(register(vault, keyed(vault, 'k', 'two'))), 'INVALID_REQUEST');
  assert.deepEqual([namesIn(vault), namesIn(vault, '.pending')], [['.pending'], []]);
});
