/**
 * Preloaded into the service where the kernel does not let supervisor.py answer its calls: fails the same calls one
 * layer up, in node:fs, and in node:sqlite before a statement runs. It does not reach the calls inside of SQLite, so a
 * commit fails as a whole. FAULT_SPEC is the specification of supervisor.py.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import type { constants } from 'node:os';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { isMainThread } from 'node:worker_threads';

interface Spec {
  readonly under: string;
  readonly report: string;
  readonly calls: readonly string[];
  readonly error: keyof typeof constants.errno;
  readonly after: number;
  readonly times: number | null;
  readonly armed: boolean;
  /** The directory for copies of the data directory before changes; the names are nanoseconds. */
  readonly record: string | null;
}

const spec: Spec = JSON.parse(process.env['FAULT_SPEC'] ?? '');
const { cpSync, existsSync, mkdirSync, writeFileSync } = fs;
/** SQLite's codes of a failed write, and of a full disk. SOURCE: sqlite.org/rescode.html. */
const [SQLITE_IOERR_WRITE, SQLITE_FULL] = [778, 13];
const NEEDS_ROOM = ['ENOSPC', 'EDQUOT'];
const counts: Record<string, number> = {};
const failed: [string, string][] = [];
/** Paths of the descriptors that were opened in the directory. */
const paths = new Map<number, string>();
let isArmed = spec.armed;
let seen = 0;
/** A copy takes longer than most statements, so not each of them gets one. */
const STATEMENTS_A_COPY = 8;
let statements = 0;

function copy(): void {
  if (spec.record === null || !existsSync(spec.under)) return;
  mkdirSync(spec.record, { recursive: true });
  const name = String(process.hrtime.bigint()).padStart(20, '0');
  cpSync(spec.under, `${spec.record}/${name}`, { recursive: true, filter: (path) => !path.endsWith('-shm') });
}

function arm(isNow: boolean): void {
  isArmed = isNow;
  seen = 0;
}

function fails(call: string, path: string): boolean {
  if (!isArmed || !path.startsWith(spec.under) || (spec.calls.length > 0 && !spec.calls.includes(call))) return false;
  counts[call] = (counts[call] ?? 0) + 1;
  seen += 1;
  const isChosen = seen > spec.after && (spec.times === null || seen <= spec.after + spec.times);
  if (spec.calls.length === 0 || !isChosen) return false;
  failed.push([call, path.slice(spec.under.length + 1)]);
  return true;
}

function errorOf(call: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${spec.error}: injected, ${call}`), { code: spec.error, syscall: call });
}

/** `pick` returns the path that the call is about; a path that it cannot know is not of the data directory. */
function replace(name: string, call: string, pick: (values: readonly unknown[]) => unknown): void {
  const original: unknown = Reflect.get(fs, name);
  if (typeof original !== 'function') throw new Error(`${name} is not a function`);
  Reflect.set(fs, name, (...values: unknown[]): unknown => {
    const target = pick(values);
    const path = typeof target === 'number' ? (paths.get(target) ?? '') : String(target);
    if (path.startsWith(spec.under)) copy();
    if (fails(call, path)) {
      const last = values.at(-1);
      if (name.endsWith('Sync') || typeof last !== 'function') throw errorOf(call);
      process.nextTick(() => Reflect.apply(last, undefined, [errorOf(call)]));
      return undefined;
    }
    const result: unknown = Reflect.apply(original, fs, values);
    if (name === 'openSync' && typeof result === 'number') paths.set(result, path);
    return result;
  });
}

/** Statements that change the database: they write and, in a transaction of one statement, sync. */
const CHANGES = /^\s*(?:COMMIT|INSERT|UPDATE|DELETE|CREATE|PRAGMA (?:journal_mode|wal_checkpoint\((?!NOOP)))/i;

function replaceStatement(owner: object, name: string, textOf: (self: unknown, values: unknown[]) => string): void {
  const original: unknown = Reflect.get(owner, name);
  if (typeof original !== 'function') throw new Error(`${name} is not a function`);
  Reflect.set(owner, name, function (this: unknown, ...values: unknown[]): unknown {
    const isChange = CHANGES.test(textOf(this, values));
    if (isChange && statements++ % STATEMENTS_A_COPY === 0) copy();
    if (isChange && fails('pwrite64', `${spec.under}/leasehold.db-wal`)) {
      const errcode = spec.error === 'ENOSPC' ? SQLITE_FULL : SQLITE_IOERR_WRITE;
      const message = errcode === SQLITE_FULL ? 'database or disk is full' : 'disk I/O error';
      throw Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR', errcode });
    }
    return Reflect.apply(original, this, values);
  });
}

const first = ([value]: readonly unknown[]): unknown => value;
/** An open for reading does not fail for lack of room. */
function opened([path, flags]: readonly unknown[]): unknown {
  const isNew = !existsSync(String(path));
  const writes = flags !== 'r' && flags !== fs.constants.O_RDONLY;
  if (NEEDS_ROOM.includes(spec.error)) return writes && isNew ? path : '';
  return spec.error === 'EROFS' && !writes ? '' : path;
}
const removed = ([path]: readonly unknown[]): unknown => (NEEDS_ROOM.includes(spec.error) ? '' : path);

if (isMainThread) {
  replace('openSync', 'openat', opened);
  replace('writeSync', 'write', first);
  replace('writeFileSync', 'write', first);
  for (const name of ['fsync', 'fsyncSync']) replace(name, 'fsync', first);
  for (const name of ['fdatasync', 'fdatasyncSync']) replace(name, 'fdatasync', first);
  replace('renameSync', 'rename', first);
  replace('rmSync', 'unlink', removed);
  replace('mkdirSync', 'mkdir', first);
  syncBuiltinESMExports();
  replaceStatement(DatabaseSync.prototype, 'exec', (_, [sql]) => String(sql));
  replaceStatement(StatementSync.prototype, 'run', (self) => (self instanceof StatementSync ? self.sourceSQL : ''));
  process.on('SIGUSR1', () => arm(true));
  process.on('SIGUSR2', () => arm(false));
  process.on('exit', () => writeFileSync(spec.report, JSON.stringify({ counts, failed, failures: failed.length })));
}
