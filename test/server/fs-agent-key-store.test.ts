// Recovery of agents' key directories after a crash: pending keys are published or deleted, directories of deregistered
// agents are deleted, and unknown files are left unchanged. SOURCE: interface 2.5; design, "Key files"; security,
// "Half-done deletes (CVE-2020-7220)".

import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { AgentId, AgentName } from '../../src/core/names.ts';
import { generateAgentKeys } from '../../src/crypto/signatures.ts';
import { StartupError } from '../../src/platform/errors.ts';
import { childPath } from '../../src/platform/paths.ts';
import { FsAgentKeyStore } from '../../src/server/fs-agent-key-store.ts';
import type { Agent } from '../../src/vault/agents/agent.ts';
import { readAgentKey, verifyAs } from '../kit/client.ts';
import { executeSql } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { agentIdOf, copyVault, photograph } from './vaults.ts';

const KEPT = ['agent_id', 'private_key.pem'];
const agents = (dataDir: string, ...parts: string[]) => join(dataDir, 'agents', ...parts);
const names = (dataDir: string, ...parts: string[]) => readdirSync(agents(dataDir, ...parts)).sort();

/** Starts a server, changes the vault, and stops it. */
async function during(
  t: TestContext,
  dataDir: string,
  work: (service: TestService) => Promise<unknown>,
): Promise<void> {
  const service = await startTestService(t, [], dataDir);
  await work(service);
  await service.stop();
}

async function assertLogsIn({ address }: TestService, dataDir: string, name: string): Promise<void> {
  assert.equal((await verifyAs(address, name, readAgentKey(dataDir, name))).status, 200);
}

test('the pending key of a registered agent is published, and signs for it', async (t) => {
  const dataDir = await copyVault(t);
  const before = photograph(agents(dataDir, 'kept'));
  renameSync(agents(dataDir, 'kept'), agents(dataDir, '.pending', agentIdOf(dataDir, 'kept')));
  const service = await startTestService(t, [], dataDir);
  assert.deepEqual(names(dataDir), ['.pending', 'granted', 'kept']);
  assert.deepEqual(names(dataDir, '.pending'), []);
  assert.deepEqual(photograph(agents(dataDir, 'kept')), before);
  await assertLogsIn(service, dataDir, 'kept');
});

test('the pending key of an agent that was never registered is deleted, complete or not', async (t) => {
  const dataDir = await copyVault(t);
  const pending = (name: string) => agents(dataDir, '.pending', name);
  cpSync(agents(dataDir, 'kept'), pending('01890000-0000-7000-8000-000000000001'), { recursive: true });
  mkdirSync(pending('01890000-0000-7000-8000-000000000002'));
  mkdirSync(pending('01890000-0000-7000-8000-000000000003'));
  writeFileSync(join(pending('01890000-0000-7000-8000-000000000003'), 'private_key.pem'), '-----BEGIN');
  writeFileSync(pending('a file'), '');
  const service = await startTestService(t, [], dataDir);
  assert.deepEqual(names(dataDir, '.pending'), ['a file'], 'only what the server made is deleted');
  await assertLogsIn(service, dataDir, 'kept');
});

test('the directory of a deregistered agent that a crash left is deleted', async (t) => {
  const dataDir = await copyVault(t);
  const aside = join(dataDir, '..', 'aside');
  cpSync(agents(dataDir, 'kept'), aside, { recursive: true });
  await during(t, dataDir, async ({ admin }) => {
    assert.equal((await admin.delete('/api/v1/agents/kept')).status, 204);
    assert.deepEqual(names(dataDir), ['.pending', 'granted']);
    assert.deepEqual(names(dataDir, '.pending'), []);
  });
  cpSync(aside, agents(dataDir, 'kept'), { recursive: true });
  cpSync(aside, agents(dataDir, '.pending', agentIdOf(dataDir, 'kept')), { recursive: true });
  await startTestService(t, [], dataDir);
  assert.deepEqual(names(dataDir), ['.pending', 'granted']);
  assert.deepEqual(names(dataDir, '.pending'), []);
});

test('the key of an agent with an altered row stays, even after a revocation of all its leases', async (t) => {
  const dataDir = await copyVault(t);
  const before = photograph(agents(dataDir, 'kept'));
  await during(t, dataDir, async ({ admin }) => {
    assert.equal((await admin.post('/api/v1/leases/revoke', { agent: 'kept' })).status, 200);
  });
  await executeSql(dataDir, "UPDATE agents SET description = 'x' WHERE name = 'kept'");
  const { warnings } = await startTestService(t, [], dataDir);
  assert.match(warnings.join(), /^1 row of agents, operators or policies/);
  assert.deepEqual(photograph(agents(dataDir, 'kept')), before);
});

test('the directory of an earlier agent is replaced by that of the agent that has the name now', async (t) => {
  const dataDir = await copyVault(t);
  const aside = join(dataDir, '..', 'aside');
  cpSync(agents(dataDir, 'kept'), aside, { recursive: true });
  await during(t, dataDir, async ({ admin }) => {
    await admin.delete('/api/v1/agents/kept');
    assert.equal((await admin.post('/api/v1/agents', { name: 'kept' })).status, 201);
  });
  const id = agentIdOf(dataDir, 'kept');
  renameSync(agents(dataDir, 'kept'), agents(dataDir, '.pending', id));
  cpSync(aside, agents(dataDir, 'kept'), { recursive: true });
  const service = await startTestService(t, [], dataDir);
  assert.equal(agentIdOf(dataDir, 'kept'), id);
  assert.deepEqual(names(dataDir, '.pending'), []);
  await assertLogsIn(service, dataDir, 'kept');
});

test('the directory of an earlier agent is also deleted if the agent with the name now supplied its own key', async (t) => {
  const dataDir = await copyVault(t);
  const aside = join(dataDir, '..', 'aside');
  cpSync(agents(dataDir, 'kept'), aside, { recursive: true });
  await during(t, dataDir, async ({ admin }) => {
    const { public_key } = (await admin.get('/api/v1/agents/kept')).body.data;
    await admin.delete('/api/v1/agents/kept');
    assert.equal((await admin.post('/api/v1/agents', { name: 'kept', public_key })).status, 201);
    assert.equal(existsSync(agents(dataDir, 'kept')), false);
  });
  cpSync(aside, agents(dataDir, 'kept'), { recursive: true });
  await startTestService(t, [], dataDir);
  assert.equal(existsSync(agents(dataDir, 'kept')), false);
});

test('unknown files are left unchanged, byte for byte', async (t) => {
  const dataDir = await copyVault(t);
  const make = (name: string, files: Readonly<Record<string, string>>) => {
    mkdirSync(agents(dataDir, name), { recursive: true, mode: 0o700 });
    for (const [file, text] of Object.entries(files)) writeFileSync(agents(dataDir, name, file), text, { mode: 0o600 });
  };
  make('handmade', { 'private_key.pem': 'a key' });
  make('foreign', { agent_id: '01890000-0000-7000-8000-000000000009\n', 'private_key.pem': 'a key' });
  make('empty', {});
  make('no-id', { agent_id: '' });
  make('path-id', { agent_id: '../../kept\n' });
  make('.hidden', { agent_id: 'x' });
  writeFileSync(agents(dataDir, 'a file'), 'note', { mode: 0o600 });
  const before = photograph(agents(dataDir));
  await during(t, dataDir, ({ admin }) => admin.get('/api/v1/agents'));
  assert.deepEqual(photograph(agents(dataDir)), before);
});

test('a directory in place of agent_id does not crash the start: it succeeds or fails with one line', async (t) => {
  const dataDir = await copyVault(t);
  mkdirSync(agents(dataDir, 'odd', 'agent_id'), { recursive: true, mode: 0o700 });
  await startTestService(t, [], dataDir).catch((error) =>
    assert.equal(error instanceof StartupError, true, String(error)),
  );
});

test('an agent without a directory can be deregistered, and the directory of another agent is left unchanged', async (t) => {
  const dataDir = await copyVault(t);
  await during(t, dataDir, async ({ admin }) => {
    assert.equal((await admin.post('/api/v1/agents', { name: 'away' })).status, 201);
    rmSync(agents(dataDir, 'away'), { recursive: true });
    rmSync(agents(dataDir, 'kept'), { recursive: true });
    mkdirSync(agents(dataDir, 'kept'), { mode: 0o700 });
    writeFileSync(agents(dataDir, 'kept', 'agent_id'), '01890000-0000-7000-8000-000000000009\n', { mode: 0o600 });
    assert.equal((await admin.delete('/api/v1/agents/away')).status, 204);
    assert.equal((await admin.delete('/api/v1/agents/kept')).status, 204);
    assert.equal((await admin.get('/api/v1/agents')).body.data.length, 1);
  });
  assert.deepEqual(names(dataDir), ['.pending', 'granted', 'kept']);
});

test('the complete key is in its directory when the registration responds, under the documented names', async (t) => {
  const dataDir = await copyVault(t);
  await during(t, dataDir, async (service) => {
    const created = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) => service.admin.post('/api/v1/agents', { name })),
    );
    for (const { status } of created) assert.equal(status, 201);
    for (const name of ['a', 'b', 'c', 'd']) {
      assert.deepEqual(names(dataDir, name), KEPT);
      assert.match(readFileSync(agents(dataDir, name, 'private_key.pem'), 'utf8'), /^-----BEGIN PRIVATE KEY-----\n/);
      await assertLogsIn(service, dataDir, name);
    }
    assert.deepEqual(names(dataDir, '.pending'), []);
  });
});

const SEGMENTS = [
  '',
  '.',
  '..',
  '../x',
  'a/../..',
  '/etc',
  'a/b',
  'a\\b',
  'a\0',
  '\ud800',
  'x'.repeat(256),
  'ü'.repeat(128),
];

test('a path is joined from one segment only, and the error does not repeat it', () => {
  for (const name of SEGMENTS) {
    assert.throws(
      () => childPath('/data', name),
      (error) => error instanceof StartupError && !(name.length > 2 && error.message.includes(name)),
      JSON.stringify(name),
    );
  }
  assert.equal(childPath('/data', '..a'), '/data/..a');
});

test('no name and no id of an agent leads out of its directory, and nothing elsewhere is written or deleted', async (t) => {
  const root = temporaryDirectory(t);
  const precious = join(root, 'precious');
  mkdirSync(precious);
  writeFileSync(join(precious, 'agent_id'), 'mine');
  const store = new FsAgentKeyStore(join(root, 'data', 'agents'));
  const id = crypto.randomUUID() as AgentId;
  const { privateKeyPem, publicKey } = await generateAgentKeys();
  await store.stage(id, privateKeyPem);
  const before = photograph(root);
  for (const text of [...SEGMENTS, '../../precious', '../../../precious', '.pending', precious]) {
    const [name, otherId] = [text as AgentName, text as AgentId];
    await assert.rejects(store.commit(id, name));
    await assert.rejects(store.settle(id, name, publicKey));
    await assert.rejects(store.remove(otherId, 'worker' as AgentName));
    await assert.rejects(store.abort(otherId));
    await assert.rejects(store.stage(otherId, privateKeyPem));
    assert.deepEqual(photograph(root), before, JSON.stringify(text));
  }
});

test('a directory in the place of an agent that has no id, other files, or is a link, is left and named', async (t) => {
  const root = temporaryDirectory(t);
  const agentsDir = join(root, 'agents');
  const store = new FsAgentKeyStore(agentsDir);
  const { privateKeyPem } = await generateAgentKeys();
  const precious = join(root, 'precious');
  mkdirSync(precious);
  writeFileSync(join(precious, 'agent_id'), 'mine');
  symlinkSync(precious, join(agentsDir, 'linked'));
  const make = (name: string, file: string) => {
    mkdirSync(join(agentsDir, name));
    writeFileSync(join(agentsDir, name, file), 'mine');
  };
  make('other-key', 'private_key.pem');
  make('other-id', 'agent_id');
  writeFileSync(join(agentsDir, 'other-id', 'notes.txt'), 'mine');
  for (const name of ['linked', 'other-key', 'other-id'] as AgentName[]) {
    const id = crypto.randomUUID() as AgentId;
    await store.stage(id, privateKeyPem);
    await assert.rejects(
      store.commit(id, name),
      new RegExp(`agents/${name} contains files that Leasehold did not make`),
    );
    await store.abort(id);
  }
  assert.deepEqual(readdirSync(precious), ['agent_id']);
  assert.equal(readFileSync(join(agentsDir, 'other-key', 'private_key.pem'), 'utf8'), 'mine');
  assert.deepEqual(readdirSync(join(agentsDir, 'other-id')).toSorted(), ['agent_id', 'notes.txt']);
});

test('a crash at any point of moving a key into a directory with other files loses nothing', async (t) => {
  const { privateKeyPem, publicKey } = await generateAgentKeys();
  for (const hadKey of [false, true])
    for (const moved of [[], ['agent_id'], ['agent_id', 'private_key.pem']]) {
      const agentsDir = join(temporaryDirectory(t), 'agents');
      const store = new FsAgentKeyStore(agentsDir);
      const [id, name] = [crypto.randomUUID() as AgentId, 'worker' as AgentName];
      const dir = join(agentsDir, name);
      if (hadKey) {
        await store.stage(id, (await generateAgentKeys()).privateKeyPem);
        await store.commit(id, name);
      } else mkdirSync(dir, { mode: 0o700 });
      writeFileSync(join(dir, 'notes.txt'), 'mine');
      await store.stage(id, privateKeyPem);
      for (const file of moved) renameSync(join(agentsDir, '.pending', id, file), join(dir, file));
      await new FsAgentKeyStore(agentsDir).recover([{ id, name, publicKey } as Agent], async () => false);
      assert.deepEqual(readdirSync(dir).toSorted(), ['agent_id', 'notes.txt', 'private_key.pem'], `${moved}`);
      assert.equal(readFileSync(join(dir, 'private_key.pem'), 'utf8'), privateKeyPem);
      assert.deepEqual(readdirSync(join(agentsDir, '.pending')), []);
    }
});

test('files beside the key of a deregistered agent are left', async (t) => {
  const agentsDir = join(temporaryDirectory(t), 'agents');
  const store = new FsAgentKeyStore(agentsDir);
  const id = crypto.randomUUID() as AgentId;
  const { privateKeyPem } = await generateAgentKeys();
  await store.stage(id, privateKeyPem);
  await store.commit(id, 'worker' as AgentName);
  writeFileSync(join(agentsDir, 'worker', 'notes.txt'), 'mine');
  // A new key of the agent, as a rotation writes it.
  const next = await generateAgentKeys();
  await store.stage(id, next.privateKeyPem);
  await store.commit(id, 'worker' as AgentName);
  assert.equal(readFileSync(join(agentsDir, 'worker', 'private_key.pem'), 'utf8'), next.privateKeyPem);
  await store.remove(id, 'worker' as AgentName);
  assert.deepEqual(readdirSync(join(agentsDir, 'worker')), ['notes.txt']);
  // The name is free again.
  const other = crypto.randomUUID() as AgentId;
  await store.stage(other, privateKeyPem);
  await store.commit(other, 'worker' as AgentName);
  assert.deepEqual(readdirSync(join(agentsDir, 'worker')).toSorted(), ['agent_id', 'notes.txt', 'private_key.pem']);
  assert.deepEqual(readdirSync(join(agentsDir, '.pending')), []);
});
