/** A vault with a random history, on copies of which rows are tampered with. */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { StartupError } from '../../src/platform/errors.ts';
import { StoreError } from '../../src/store/errors.ts';
import type { Dice } from '../e2e/random.ts';
import { executeSql } from '../kit/direct-db.ts';
import { type Scope, temporaryDirectory, withScope } from '../kit/directory.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { copyDatabaseOf, STORE } from '../kit/stores.ts';
import { type Act, pickAct } from './random-acts.ts';
import { type History, PATHS, runHistory } from './random-history.ts';
import { type Rows, readRows, TABLES } from './raw-rows.ts';

type Outcome = 'refused' | 'served';

/** What callers get: the texts of successful responses, by request. */
type Grants = ReadonlyMap<string, string>;

export class TamperedVault {
  readonly #directory: string;
  readonly #dataDir: string;
  readonly #history: History;
  readonly #rows: Rows;
  readonly #grants: Grants;
  #copies = 0;

  private constructor(directory: string, dataDir: string, history: History, rows: Rows, grants: Grants) {
    this.#directory = directory;
    this.#dataDir = dataDir;
    this.#history = history;
    this.#rows = rows;
    this.#grants = grants;
  }

  static async build(scope: Scope, dice: Dice): Promise<TamperedVault> {
    const directory = temporaryDirectory(scope);
    const dataDir = join(directory, 'data');
    const first = await startTestService(scope, [], dataDir);
    const nodes = STORE === 'postgres' ? [first, await startAnotherNode(scope, first)] : [first];
    const history = await runHistory(nodes, dice);
    for (const node of nodes) await assertNoProblem(node);
    for (const node of nodes.toReversed()) await node.stop();
    const again = await startTestService(scope, [], dataDir);
    assert.deepEqual(again.warnings, []);
    await assertNoProblem(again);
    const grants = await readGrants(again, history);
    await again.stop();
    return new TamperedVault(directory, dataDir, history, await readRows(dataDir), grants);
  }

  /** Does one random act to a copy. @throws AssertionError that names the act */
  async tamper(dice: Dice): Promise<Outcome> {
    const table = dice.pick(TABLES);
    const act = pickAct(table, this.#rows, this.#history, dice);
    // A running service writes its head record again.
    const isRunning = table !== 'audit_head' && dice.chance(0.3);
    const dataDir = join(this.#directory, `copy-${this.#copies++}`);
    cpSync(this.#dataDir, dataDir, { recursive: true });
    await copyDatabaseOf(this.#dataDir, dataDir);
    try {
      return await withScope((scope) => this.#judge(scope, dataDir, act, isRunning));
    } catch (error) {
      throw new Error(`${act.name} while ${isRunning ? 'running' : 'stopped'}: ${act.sql}`, { cause: error });
    }
  }

  async #judge(scope: Scope, dataDir: string, act: Act, isRunning: boolean): Promise<Outcome> {
    if (!isRunning) await executeSql(dataDir, act.sql);
    let service: TestService;
    try {
      service = await startTestService(scope, [], dataDir);
    } catch (error) {
      assert.ok(error instanceof StartupError || error instanceof StoreError, String(error));
      return 'refused';
    }
    if (isRunning) await executeSql(dataDir, act.sql);
    for (const [request, text] of await readGrants(service, this.#history)) {
      assert.equal(text, this.#grants.get(request), request);
    }
    await assertNamed(service, act);
    return 'served';
  }
}

async function assertNoProblem(service: TestService): Promise<void> {
  const { valid, state } = await verify(service);
  assert.deepEqual([valid, state.problems], [true, []]);
}

async function assertNamed(service: TestService, { subjects }: Act): Promise<void> {
  const { valid, state } = await verify(service);
  if (subjects.length === 0) return assert.equal(valid, false);
  const named: string[] = state.problems.map(({ subject }: { subject: string }) => subject);
  assert.ok(
    subjects.some((subject) => named.includes(subject)),
    `${subjects} not in ${named}`,
  );
}

async function verify({ admin }: TestService) {
  const { status, text, body } = await admin.get('/api/v1/audit/verify?state=true&values=true');
  assert.equal(status, 200, text);
  return body.data;
}

/** Only responses that do not depend on the time. */
async function readGrants({ admin, as }: TestService, { tokens }: History): Promise<Grants> {
  const grants = new Map<string, string>();
  const read = async (who: string, path: string, pick: (data: Data) => unknown): Promise<void> => {
    const { status, body } = await (who === 'admin' ? admin : as(who)).get(path);
    if (status === 200) grants.set(`${who} ${path}`, JSON.stringify(await pick(body.data)));
  };
  for (const path of PATHS) {
    for (const version of ['', '?version=1', '?version=2']) {
      await read('admin', `/api/v1/credentials/${path}${version}`, ({ value }) => value);
    }
    await read('admin', `/api/v1/targets/${path}`, (data) => data);
    for (const token of tokens) {
      await read(token, `/api/v1/credentials/${path}`, async ({ value, lease_id: id }) => {
        const { issued_at: from, expires_at: to } = (await admin.get(`/api/v1/leases/${id}`)).body.data;
        return [value, Date.parse(to) - Date.parse(from)];
      });
    }
  }
  for (const token of tokens) await read(token, '/auth/session', ({ expires_in: _, ...data }) => data);
  for (const list of ['agents', 'operators', 'policies']) {
    const { body } = await admin.get(`/api/v1/${list}`);
    for (const row of body?.data ?? []) grants.set(`${list} ${row.name}`, JSON.stringify(row));
  }
  return grants;
}

type Data = Readonly<Record<string, unknown>>;
