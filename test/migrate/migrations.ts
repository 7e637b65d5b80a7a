// Runs `npm run migrate` as a process or in this one, and reads the rows of databases without a service.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Configuration, readConfiguration } from '../../src/server/configuration.ts';
import { migrate } from '../../src/server/migrate.ts';
import { readMigrationRequest } from '../../src/server/migrate-options.ts';
import { formatSummary, reporter } from '../../src/server/migrate-report.ts';
import { describeFailure } from '../../src/server/operator-errors.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { querySql } from '../kit/postmaster.ts';

const ROOT = join(import.meta.dirname, '../..');
const NODE_COMPILE_CACHE = join(ROOT, 'node_modules', '.cache', 'leasehold');

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly told: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves when the output contains the text, or the process has exited. */
  tells(text: string): Promise<void>;
}

export function beginMove(flags: readonly string[], environment: Readonly<Record<string, string>> = {}): Running {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, ['--disable-proto=delete', join(ROOT, 'src/bin/migrate.ts'), ...flags], {
    // The launcher's compile cache shortens the start.
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { out: '', told: '' };
  child.stdout.on('data', (chunk) => (said.out += chunk));
  child.stderr.on('data', (chunk) => (said.told += chunk));
  const ended = new Promise<Ended>((resolve) => child.on('close', (code) => resolve({ code, ...said })));
  const tells = (text: string): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (said.told.includes(text)) resolve();
      };
      child.stderr.on('data', look);
      void ended.then(() => resolve());
    });
  return { child, ended, tells };
}

const OWN_UMASK = 0o077;

/** Runs `src/bin/migrate.ts` in this process, with a fifth of the processor time of a separate one. */
async function moveInProcess(
  flags: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  let told = '';
  const say = (line: string): void => {
    told += `${line}\n`;
  };
  const umask = process.umask(OWN_UMASK);
  try {
    const { request, warnings } = readMigrationRequest([...flags], environment) ?? assert.fail('it asks for help');
    for (const warning of warnings) say(`WARNING  ${warning}`);
    const { signal } = new AbortController();
    const result = await migrate(request, { signal, say, progress: reporter(say) });
    return { code: 0, out: formatSummary(request, result), told };
  } catch (error) {
    const failure = describeFailure(error);
    if (failure === null) throw error;
    say(`leasehold: ${failure.line}`);
    return { code: failure.code, out: '', told };
  } finally {
    process.umask(umask);
  }
}

/** The configuration of a request whose root key is that of the directory. */
export function configurationOf(dir: string): Configuration {
  return readConfiguration(['--data-dir', dir], {}) ?? assert.fail('it asks for help');
}

/** Asserts that it succeeds; resolves to its output. */
export async function moveVault(
  from: string,
  to: string,
  flags: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const ended = await moveInProcess(['--from', from, '--to', to, ...flags], environment);
  assert.equal(ended.code, 0, ended.told);
  return ended;
}

/** Asserts that it fails with that exit code and one line, the last of its output. */
export async function assertRejected(
  flags: readonly string[],
  reason: RegExp,
  code = 1,
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { code: found, out, told } = await moveInProcess(flags, environment);
  const last = told.trimEnd().split('\n').at(-1) ?? '';
  assert.match(last, /^leasehold: /, told);
  assert.match(last, reason);
  assert.equal(told.match(/^leasehold: /gm)?.length, 1);
  assert.equal(out, '');
  assert.equal(found, code);
}

/** A file with the URL, for `--database-file`. */
export function urlFile(scope: Scope, url: string): string {
  const file = join(temporaryDirectory(scope), 'url');
  writeFileSync(file, `${url}\n`);
  chmodSync(file, 0o600);
  return file;
}

/** The rows of a SQLite file that a migration must preserve. The ids of count rows may change. */
const CONTENT: Readonly<Record<string, string>> = {
  vault: 'SELECT * FROM vault',
  audit_entries: 'SELECT * FROM audit_entries ORDER BY seq',
  audit_head: 'SELECT seq, hmac, mac, epoch, tree, control FROM audit_head',
  agents: 'SELECT * FROM agents ORDER BY id',
  policies: 'SELECT * FROM policies ORDER BY name',
  sessions: 'SELECT * FROM sessions ORDER BY token_hash',
  spent_challenges: 'SELECT * FROM spent_challenges ORDER BY id',
  idempotency_records: 'SELECT * FROM idempotency_records ORDER BY id',
  credentials: `SELECT id, path, type, description, created_at, updated_at, version, mac, iif(newest_sealed IS NULL, NULL, newest_at) AS at,
    hex(newest_sealed) AS newest
    FROM credentials ORDER BY path`,
  credential_versions: `SELECT credential_id, version, type, created_at, hex(sealed) AS sealed FROM credential_versions
    ORDER BY credential_id, version`,
  leases: 'SELECT * FROM leases ORDER BY seq',
  lease_spans: 'SELECT * FROM lease_spans ORDER BY agent_name, span',
  bulk_revocations: 'SELECT * FROM bulk_revocations ORDER BY seq',
  exposures: 'SELECT * FROM exposures ORDER BY path, credential_id, version, kind, agent_name',
  exposure_progress: 'SELECT * FROM exposure_progress',
};

/** Every row except the access counts, which the service returns. */
export function contentOf(dataDir: string): Record<string, unknown[]> {
  const database = new DatabaseSync(join(dataDir, 'leasehold.db'), { readOnly: true });
  try {
    const tables = Object.entries(CONTENT).map(([name, sql]) => [
      name,
      database
        .prepare(sql)
        .all()
        .map((row) => ({ ...row })),
    ]);
    return Object.fromEntries(tables);
  } finally {
    database.close();
  }
}

/** Every row of every table with xmin, xmax and ctid, so that any write or lock changes the result. */
export async function photographDatabase(url: string): Promise<Record<string, unknown>> {
  const tables = await querySql(
    url,
    "SELECT tablename FROM pg_tables WHERE schemaname = 'leasehold' ORDER BY tablename",
  );
  const shots: Record<string, unknown> = {};
  for (const { tablename: table } of tables) {
    const row = "concat_ws(' ', t.ctid, t.xmin, t.xmax, t::text)";
    const [shot] = await querySql(
      url,
      `SELECT count(*)::integer AS n, md5(string_agg(${row}, ',' ORDER BY t.ctid)) AS sum FROM leasehold.${table} t`,
    );
    shots[String(table)] = { ...shot };
  }
  return shots;
}

/** The number of rows of a table in PostgreSQL. */
export async function countRows(url: string, table: string): Promise<number> {
  const [row] = await querySql(url, `SELECT count(*)::integer AS n FROM leasehold.${table}`);
  return Number(row?.['n']);
}
