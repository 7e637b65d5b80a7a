// Runs `npm run migrate` as a process of its own, and looks at what lies in databases that nobody uses.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Scope, temporaryFolder } from '../kit/directory.ts';
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
  /** Resolves when it has told so, or has ended. */
  tells(text: string): Promise<void>;
}

export function beginMove(flags: readonly string[], environment: Readonly<Record<string, string>> = {}): Running {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, ['--disable-proto=throw', join(ROOT, 'src/bin/migrate.ts'), ...flags], {
    // As the launcher has it: less time goes by before the move begins.
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

/** Claims that it succeeds; resolves to what it printed. */
export async function moveVault(from: string, to: string, flags: readonly string[] = []): Promise<Ended> {
  const ended = await beginMove(['--from', from, '--to', to, ...flags]).ended;
  assert.equal(ended.code, 0, ended.told);
  return ended;
}

/** Claims that it is refused in one line, which is the last, with that exit code. */
export async function assertRefused(
  flags: readonly string[],
  reason: RegExp,
  code = 1,
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { code: found, out, told } = await beginMove(flags, environment).ended;
  const last = told.trimEnd().split('\n').at(-1) ?? '';
  assert.match(last, /^leasehold: /, told);
  assert.match(last, reason);
  assert.equal(told.match(/^leasehold: /gm)?.length, 1);
  assert.equal(out, '');
  assert.equal(found, code);
}

/** A file that holds the URL, as `--database-file` wants it. */
export function urlFile(scope: Scope, url: string): string {
  const file = join(temporaryFolder(scope), 'url');
  writeFileSync(file, `${url}\n`);
  chmodSync(file, 0o600);
  return file;
}

/** Of a SQLite file: what a move must bring there and back. Numbers of rows of counts are the file's own business. */
const CONTENT: Readonly<Record<string, string>> = {
  vault: 'SELECT * FROM vault',
  audit_entries: 'SELECT * FROM audit_entries ORDER BY seq',
  audit_head: 'SELECT seq, hmac, mac, epoch FROM audit_head',
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
};

/** Every row but the counts, which the service tells. */
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

/** Every row of every table, with who wrote or locked it and where it lies: nothing can touch one without a trace here. */
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

/** How many rows the table of the PostgreSQL has. */
export async function countRows(url: string, table: string): Promise<number> {
  const [row] = await querySql(url, `SELECT count(*)::integer AS n FROM leasehold.${table}`);
  return Number(row?.['n']);
}
