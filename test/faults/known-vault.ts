/**
 * A vault with known content, and the allowed responses of a service on a damaged copy of it: the right value, an
 * error, or a rejected startup. It must never return another value, allow access that was not granted or has ended, or
 * present an empty vault as this one.
 */
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { StartupError } from '../../src/platform/errors.ts';
import { describeFailure } from '../../src/server/operator-errors.ts';
import { StoreError } from '../../src/store/errors.ts';
import { createClient } from '../kit/client.ts';
import { withScope } from '../kit/directory.ts';
import { launchProcess } from '../kit/process.ts';
import { isRolledBack } from '../kit/rolled-back.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const GRANTED = 'open/key-0';
const FORMERLY_GRANTED = 'shut/key-1';
/** The second is longer than what a credential's row holds. */
const VERSIONS: readonly ((path: string) => string)[] = [
  (path) => `${path}, first`,
  (path) => `${path}, second ${'v'.repeat(3000)}`,
  (path) => `${path}, third`,
];
const PATHS = [GRANTED, FORMERLY_GRANTED, ...Array.from({ length: 30 }, (_, index) => `many/key-${index}`)];

export interface KnownVault {
  /** Copies of its data directory: after a stop, and after a kill, with a write-ahead log. */
  readonly copies: readonly string[];
  /** The number of entries that each copy has at least. */
  readonly entries: readonly number[];
  readonly session: string;
  /** A session of a deregistered agent. */
  readonly endedSession: string;
}

/** Builds it in the directory. */
export function buildKnownVault(directory: string): Promise<KnownVault> {
  return withScope(async (scope) => {
    const dataDir = join(directory, 'data');
    const [stopped, killed] = [join(directory, 'stopped'), join(directory, 'killed')];
    const first = await startTestService(scope, [], dataDir);
    const { token: endedSession } = await first.agent('former', { '*': ['retrieve'] });
    const { token: session } = await first.agent('reader', {
      [GRANTED]: ['retrieve'],
      [FORMERLY_GRANTED]: ['retrieve'],
    });
    for (const version of VERSIONS.slice(0, 2)) await storeAll(first, version);
    await expectDone(first.admin.delete('/api/v1/agents/former'));
    await expectDone(first.admin.delete('/api/v1/policies/reader-1'));
    await first.stop();
    cpSync(dataDir, stopped, { recursive: true });
    const second = await startTestService(scope, [], dataDir);
    const entriesStopped = await countEntries(second);
    for (const version of VERSIONS.slice(2)) await storeAll(second, version);
    const entriesKilled = await countEntries(second);
    cpSync(dataDir, killed, { recursive: true });
    await second.stop();
    return { copies: [stopped, killed], entries: [entriesStopped - 1, entriesKilled], session, endedSession };
  });
}

async function storeAll({ admin }: TestService, valueAt: (path: string) => string): Promise<void> {
  for (const path of PATHS) {
    const { status, text } = await admin.post('/api/v1/credentials', { path, value: valueAt(path) });
    assert.equal(status, 201, text);
  }
}

async function expectDone(answer: ReturnType<TestService['admin']['delete']>): Promise<void> {
  assert.equal((await answer).status, 204);
}

async function countEntries({ admin }: TestService): Promise<number> {
  return (await admin.get('/api/v1/audit/verify')).body.data.entries;
}

/**
 * `reported`: it serves, and some responses are errors. `missing`: the log is valid, and a credential is not found,
 * which no response tells from one that was never stored.
 */
export type Outcome = 'refused' | 'intact' | 'reported' | 'missing';

/**
 * Starts the service on a damaged copy.
 * @throws AssertionError for a wrong response
 */
export async function judge(vault: KnownVault, copy: number, dataDir: string): Promise<Outcome> {
  let service: TestService;
  try {
    // After a failure of the storage every response is 503 here, and the program ends.
    service = await startTestService({ after: () => undefined }, [], dataDir, undefined, {}, () => undefined);
  } catch (error) {
    if (!(error instanceof StartupError || error instanceof StoreError)) {
      // The program ends with one general line for any other error.
      await judgeProcess(dataDir);
      return 'refused';
    }
    assert.doesNotMatch(describeFailure(error)?.line ?? '\n', /\n/);
    return 'refused';
  }
  try {
    return (await isRolledBack(service)) ? await checkRefused(service) : await checkAnswers(vault, copy, service);
  } finally {
    // A read may have found the damage, and then the stop cannot be recorded.
    await service.stop().catch(() => undefined);
  }
}

/** The same start as a process, on a copy: it becomes ready, or it exits with 1 and one line. */
export function judgeProcess(dataDir: string): Promise<void> {
  return withScope(async (scope) => {
    const copy = `${dataDir}-process`;
    cpSync(dataDir, copy, { recursive: true });
    scope.after(() => rmSync(copy, { recursive: true }));
    const service = await launchProcess(scope, copy, ['--log-level', 'silent']);
    if ((await service.ready.catch(() => null)) !== null) return;
    assert.equal(await service.ended, 1);
    assert.match(service.output(), /^leasehold: [^\n]+\n$/);
  });
}

async function checkRefused({ admin }: TestService): Promise<Outcome> {
  for (const path of PATHS) assert.equal((await admin.get(`/api/v1/credentials/${path}`)).status, 503);
  return 'refused';
}

async function checkAnswers(vault: KnownVault, copy: number, { admin, address }: TestService): Promise<Outcome> {
  let outcome: Outcome = 'intact';
  const check = async (path: string, token: 'admin' | 'reader' | 'former', expected: string | null): Promise<void> => {
    const client = {
      admin,
      reader: createClient(address, vault.session),
      former: createClient(address, vault.endedSession),
    };
    const { status, body } = await client[token].get(`/api/v1/credentials/${path}`);
    if (status === 200) assert.equal(body.data.value, expected, `${token} got a wrong value of ${path}`);
    else assert.equal(body?.data, undefined, `${status} with data`);
    if (status === 404) outcome = 'missing';
    else if (status !== (expected === null ? (token === 'former' ? 401 : 403) : 200)) outcome = 'reported';
  };
  const newest = VERSIONS[copy === 0 ? 1 : 2] ?? String;
  for (const path of PATHS) await check(path, 'admin', newest(path));
  for (const path of PATHS.slice(0, 4)) {
    for (const [index, valueAt] of VERSIONS.slice(0, 2).entries()) {
      await check(`${path}?version=${index + 1}`, 'admin', valueAt(path));
    }
  }
  await check(GRANTED, 'reader', newest(GRANTED));
  await check(FORMERLY_GRANTED, 'reader', null);
  await check(GRANTED, 'former', null);
  const { status, body } = await admin.get('/api/v1/audit/verify');
  if (status !== 200 || body.data.valid !== true) return 'reported';
  const least = vault.entries[copy] ?? 0;
  assert.ok(body.data.entries > least, `a valid log of ${body.data.entries} entries, and ${least} were acknowledged`);
  return outcome;
}
