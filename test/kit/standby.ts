/** A streaming standby of a test's server, created over SQL, because the package has no pg_basebackup. */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import type { Scope } from './directory.ts';
import { PostgresServer, SUPERUSER } from './postmaster.ts';
import { until } from './processes.ts';
import { chownToServer } from './programs.ts';

const STREAMING_TIMEOUT_MS = 120_000;
/**
 * Files that belong to the running server or that the standby creates again.
 * SOURCE: postgresql.org/docs/18/continuous-archiving.html.
 */
const NOT_COPIED = ['postmaster.pid', 'postmaster.opts'];
const EMPTIED = 'pg_wal pg_replslot pg_dynshmem pg_notify pg_serial pg_snapshots pg_stat_tmp pg_subtrans'.split(' ');

export interface Standby {
  readonly server: PostgresServer;
  /** Promotes it; resolves when it accepts writes. */
  promote(): Promise<void>;
}

interface StandbyOptions {
  /** Its application_name, of lower-case letters, digits and underscores. */
  readonly name: string;
  /** Whether the primary confirms a commit only after this standby has it, and waits while the standby is down. */
  readonly isSynchronous: boolean;
}

/** Resolves when it streams. It has the primary's settings, except those that make the primary wait. */
export async function startStandby(
  scope: Scope,
  primary: PostgresServer,
  { name, isSynchronous }: StandbyOptions,
): Promise<Standby> {
  const { password, port } = new URL(primary.url());
  const source = `host=127.0.0.1 port=${port} user=${SUPERUSER} password=${password} application_name=${name}`;
  const settings = { hot_standby: 'on', primary_conninfo: source };
  const server = await PostgresServer.create(
    settings,
    (directory) => takeBaseBackup(primary, join(directory, 'data')),
    password,
  );
  scope.after(() => server.end());
  if (isSynchronous) await addSynchronousStandby(primary, name);
  await waitUntilStreaming(
    primary,
    name,
    isSynchronous ? ['sync', 'quorum'] : ['async', 'potential', 'sync', 'quorum'],
  );
  return { server, promote: () => promote(server) };
}

/**
 * Copies the data while the primary runs. Changes during the copy are in the log, which the standby reads from the
 * label on.
 */
async function takeBaseBackup(primary: PostgresServer, dataDir: string): Promise<void> {
  const session = postgres(primary.url(), { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    await session`select pg_backup_start('standby', fast => true)`;
    copyDirectory(primary.dataDir, dataDir);
    const [label] = await session<
      { labelfile: string }[]
    >`select labelfile from pg_backup_stop(wait_for_archive => false)`;
    writePrivate(join(dataDir, 'backup_label'), label?.labelfile ?? '');
  } finally {
    await session.end({ timeout: 1 });
  }
  writePrivate(join(dataDir, 'standby.signal'), '');
  // Removes the setting because a promoted standby would wait for itself.
  const changed = join(dataDir, 'postgresql.auto.conf');
  const lines = readFileSync(changed, 'utf8').split('\n');
  writeFileSync(changed, lines.filter((line) => !line.startsWith('synchronous_standby_names')).join('\n'));
}

function copyDirectory(source: string, target: string, path = ''): void {
  mkdirSync(target, { mode: 0o700 });
  chownToServer(target);
  for (const entry of readdirSync(source, { withFileTypes: true })) {
    const [from, to] = [join(source, entry.name), join(target, entry.name)];
    const name = path + entry.name;
    if (entry.isDirectory()) copyDirectory(from, to, `${name}/`);
    else if (entry.isFile() && !NOT_COPIED.includes(name) && !EMPTIED.some((empty) => path.startsWith(`${empty}/`))) {
      copyIfPresent(from, to);
    }
  }
}

function copyIfPresent(from: string, to: string): void {
  try {
    copyFileSync(from, to);
    chownToServer(to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error; // removed meanwhile: the log says so too
  }
}

function writePrivate(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o600 });
  chownToServer(file);
}

/** Adds a standby to those for which the primary already waits. */
async function addSynchronousStandby(primary: PostgresServer, name: string): Promise<void> {
  const [row] = await primary.query('show synchronous_standby_names');
  const others = /\((.*)\)/.exec(String(row?.['synchronous_standby_names']))?.[1]?.split(', ') ?? [];
  const names = [...others, name];
  await primary.query(`alter system set synchronous_standby_names = 'FIRST ${names.length} (${names.join(', ')})'`);
  await primary.query('select pg_reload_conf()');
}

async function waitUntilStreaming(primary: PostgresServer, name: string, states: readonly string[]): Promise<void> {
  const isStreaming = async (): Promise<boolean> => {
    const rows = await primary.query(
      `select state, sync_state from pg_stat_replication where application_name = '${name}'`,
    );
    return rows.some((row) => row['state'] === 'streaming' && states.includes(String(row['sync_state'])));
  };
  await until(isStreaming, STREAMING_TIMEOUT_MS, () => `the standby ${name} does not stream:\n${primary.log()}`);
}

async function promote(server: PostgresServer): Promise<void> {
  const [row] = await server.query('select pg_promote(wait => true, wait_seconds => 30) as done');
  if (row?.['done'] !== true) throw new Error(`the standby was not promoted:\n${server.log()}`);
}
