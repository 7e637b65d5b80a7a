// Stopped vaults for tests of a start.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { StartupError } from '../../src/platform/errors.ts';
import { StoreError } from '../../src/store/errors.ts';
import { dumpDatabase } from '../kit/direct-db.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { runProgram } from '../kit/process.ts';
import { isRolledBack } from '../kit/rolled-back.ts';
import { startTestService } from '../kit/service.ts';
import { copyDatabaseOf, STORE } from '../kit/stores.ts';

// The program also does this first.
process.umask(0o077);

/** Shared by all test files of this process, which copy from it. */
const scope: Scope = { after: (cleanUp) => void process.once('beforeExit', cleanUp) };
/** A vault after an orderly stop: a credential `a/b`, and the agents `kept` and `granted`, whose session is open. */
const template = join(temporaryDirectory(scope), 'data');
const service = await startTestService(scope, [], template);
assert.equal((await service.admin.post('/api/v1/credentials', { path: 'a/b', value: 'kept' })).status, 201);
assert.equal((await service.admin.post('/api/v1/agents', { name: 'kept' })).status, 201);
export const { token: sessionOfGranted } = await service.agent('granted', { 'a/*': ['list'] });
await service.stop();

/** The data directory of a copy of that vault, with a separate database on PostgreSQL. */
export async function copyVault(scope: Scope): Promise<string> {
  const dataDir = join(temporaryDirectory(scope), 'data');
  cpSync(template, dataDir, { recursive: true });
  await copyDatabaseOf(template, dataDir);
  return dataDir;
}

/** Kind, mode and content of the directory and everything below it. */
export function photograph(dir: string): Record<string, string> {
  const shots: Record<string, string> = {};
  const shoot = (path: string, name: string): void => {
    const stat = lstatSync(path);
    const mode = (stat.mode & 0o777).toString(8);
    if (stat.isSymbolicLink()) shots[name] = `link to ${readlinkSync(path)}`;
    else if (stat.isFile()) shots[name] = `${mode} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`;
    else shots[name] = stat.isDirectory() ? `${mode} directory` : `${mode} other`;
    if (stat.isDirectory()) for (const below of readdirSync(path)) shoot(join(path, below), `${name}/${below}`);
  };
  shoot(dir, '.');
  return shots;
}

/** The files that a running server writes without a request. */
const WRITTEN = /^\.\/(?:leasehold\.db|checkpoints\.log)/;

/** The same for a running server, without the files that it writes. */
export function photographRunning(dir: string): Record<string, string> {
  return Object.fromEntries(Object.entries(photograph(dir)).filter(([name]) => !WRITTEN.test(name)));
}

/** The whole vault: its directory, and every row on PostgreSQL. */
async function photographVault(dataDir: string) {
  return { directory: photograph(dataDir), rows: STORE === 'sqlite' ? {} : await dumpDatabase(dataDir) };
}

/** Asserts that the server does not start there, throws an error of one line, and changes nothing. */
export async function assertNoStart(scope: Scope, dataDir: string, reason: RegExp, flags: readonly string[] = []) {
  const before = await photographVault(dataDir);
  await assert.rejects(startTestService(scope, flags, dataDir), (error) => {
    assert.equal(error instanceof StartupError || error instanceof StoreError, true, String(error));
    assert.match((error as Error).message, reason);
    assert.doesNotMatch((error as Error).message, /\n/);
    return true;
  });
  assert.deepEqual(await photographVault(dataDir), before);
}

/** The same for the program, with its exit code. */
export async function assertProgramRefuses(dataDir: string, reason: RegExp, flags: readonly string[] = []) {
  const before = await photographVault(dataDir);
  const { code, output } = await runProgram(['--data-dir', dataDir, '--listen', '127.0.0.1:0', ...flags]);
  assert.match(output, /^leasehold: [^\n]+\n$/);
  assert.match(output, reason);
  assert.equal(code, 1);
  assert.deepEqual(await photographVault(dataDir), before);
}

/** The content of `agent_id` next to an agent's private key. */
export function agentIdOf(dataDir: string, name: string): string {
  return readFileSync(join(dataDir, 'agents', name, 'agent_id'), 'utf8').trim();
}

/** Whether the server serves the vault. Fails for an error that is not one line for the operator. */
export async function outcomeOfStart(scope: Scope, dataDir: string): Promise<'refused' | 'started'> {
  try {
    const service = await startTestService(scope, [], dataDir);
    const isRefused = await isRolledBack(service);
    // A read may detect the damage and stop the server.
    await service.stop().catch(() => undefined);
    return isRefused ? 'refused' : 'started';
  } catch (error) {
    assert.equal(error instanceof StartupError || error instanceof StoreError, true, String(error));
    assert.doesNotMatch((error as Error).message, /\n/);
    return 'refused';
  }
}
