/**
 * A PostgreSQL server that can be started, killed, stopped, paused and started again, on one port and one data
 * directory. It leaves no process or file behind: a guard ends it even if this process is killed.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, closeSync, existsSync, openSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { findPort } from './port.ts';
import { childrenOf, freeze, type Guard, guardDirectory, haveExited, signal, until } from './processes.ts';
import { installPrograms, makeServerDirectory, programOptions, programPath } from './programs.ts';

export const SUPERUSER = 'leasehold';
const READY_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 60_000;
const PORT_TRIES = 20;
const SIGNAL_OF = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const;

/** Settings by their names in postgresql.conf. */
export type Settings = Readonly<Record<string, string>>;
export type Row = Readonly<Record<string, unknown>>;

/** Runs SQL on a separate connection; returns the rows of one statement. */
export async function querySql(url: string, sql: string): Promise<readonly Row[]> {
  const client = postgres(url, { max: 1, fetch_types: false, connect_timeout: 10, onnotice: () => {} });
  try {
    return await client.unsafe<Row[]>(sql);
  } finally {
    await client.end({ timeout: 1 });
  }
}

export class PostgresServer {
  readonly dataDir: string;
  readonly #directory: string;
  readonly #password: string;
  readonly #guard: Guard;
  #port = 0;
  #child: ChildProcess | null = null;
  #isPaused = false;

  private constructor(directory: string, password: string) {
    this.#directory = directory;
    this.#password = password;
    this.#guard = guardDirectory(directory);
    this.dataDir = join(directory, 'data');
  }

  /**
   * `makeData` creates the data directory, and reports processes that must not outlive this one; the settings are
   * appended to its own. Resolves to a running server, or rejects and leaves nothing behind.
   */
  static async create(
    settings: Settings,
    makeData: (directory: string, password: string, tell: (pid: number) => void) => Promise<void>,
    password = randomBytes(16).toString('hex'),
  ): Promise<PostgresServer> {
    const server = new PostgresServer(makeServerDirectory(), password);
    try {
      installPrograms(server.#directory);
      await makeData(server.#directory, password, (pid) => server.#guard.watch(pid));
      server.#guard.watch(null);
      server.#configure({ ...settings, unix_socket_directories: server.#directory });
      await server.start();
      return server;
    } catch (error) {
      await server.end();
      throw error;
    }
  }

  /** Stays the same across restarts. */
  get port(): number {
    return this.#port;
  }

  /** The process id of the postmaster. */
  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error('PostgreSQL does not run');
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#child !== null;
  }

  /** The superuser's URL over 127.0.0.1. */
  url(database = 'postgres'): string {
    return `postgres://${SUPERUSER}:${this.#password}@127.0.0.1:${this.#port}/${database}`;
  }

  /** The libpq URL of the superuser, over the Unix socket. The socket has the usual name, that of port 5432. */
  socketUrl(database = 'postgres'): string {
    return `postgres://${SUPERUSER}:${this.#password}@/${database}?host=${encodeURIComponent(this.#directory)}`;
  }

  /** The superuser's URL. */
  query(sql: string, database?: string): Promise<readonly Row[]> {
    return querySql(this.url(database), sql);
  }

  /** The server's complete log. */
  log(): string {
    const file = join(this.#directory, 'server.log');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  /**
   * Resolves when it accepts connections, after a kill when it has recovered.
   * @throws Error with the last lines of its log
   */
  async start(): Promise<void> {
    if (this.#child !== null) throw new Error('PostgreSQL runs already');
    const isFirst = this.#port === 0;
    for (let attempt = 1; ; attempt += 1) {
      if (isFirst) this.#port = await findPort();
      const before = this.log().length;
      if (await this.#launch()) break;
      const said = this.log().slice(before);
      const isTaken = said.includes('Address already in use');
      if (!isTaken || attempt === PORT_TRIES) throw new Error(`PostgreSQL did not start:\n${lastLines(said)}`);
      await sleep(100);
    }
    if (isFirst) symlinkSync(`.s.PGSQL.${this.#port}`, join(this.#directory, '.s.PGSQL.5432'));
  }

  /** An orderly end: `fast` ends its sessions, `smart` waits for them, `immediate` leaves the rest to recovery. */
  async stop(mode: keyof typeof SIGNAL_OF = 'fast'): Promise<void> {
    if (this.#child === null) return;
    signal([this.pid], SIGNAL_OF[mode]);
    await until(
      () => this.#child === null,
      READY_TIMEOUT_MS,
      () => `PostgreSQL did not stop:\n${lastLines(this.log())}`,
    );
  }

  /** Sends SIGKILL to all its processes, like a crash of the machine; resolves when all have ended. */
  async kill(): Promise<void> {
    if (this.#child === null) return;
    const { pid } = this;
    await freeze(pid); // ORDER: before its children are looked up, or it could have one more
    const all = [pid, ...childrenOf(pid)];
    const segment = this.#postmasterLines()[6]?.trim().split(/\s+/)[1];
    signal(all, 'SIGKILL');
    await until(
      () => this.#child === null && haveExited(all),
      STOP_TIMEOUT_MS,
      () => 'PostgreSQL survived SIGKILL',
    );
    // WHY: its id may soon be another process's, which the next start would take for a server on this data.
    rmSync(join(this.dataDir, 'postmaster.pid'), { force: true });
    // The 56 bytes of shared memory that it could not give back; the system may lack the program, and then they stay.
    if (segment !== undefined) await new Promise((resolve) => execFile('ipcrm', ['-m', segment], resolve));
  }

  /** Pauses all processes with open connections, like a hanging machine; resolves when all are stopped. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    await freeze(this.pid);
    for (const child of childrenOf(this.pid)) await freeze(child);
  }

  resume(): void {
    if (this.#isPaused) signal([...childrenOf(this.pid), this.pid], 'SIGCONT');
    this.#isPaused = false;
  }

  /** Ends the server and removes all its files. */
  async end(): Promise<void> {
    try {
      if (this.#child !== null) {
        this.resume();
        signal([this.pid], 'SIGQUIT');
        await until(
          () => this.#child === null,
          STOP_TIMEOUT_MS,
          () => '',
        ).catch(() => this.kill());
      }
    } finally {
      await this.#guard.dismiss();
      rmSync(this.#directory, { recursive: true, force: true });
    }
  }

  #configure(settings: Settings): void {
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`);
    appendFileSync(join(this.dataDir, 'postgresql.conf'), lines.join(''));
  }

  /** False if the server exited instead. */
  async #launch(): Promise<boolean> {
    const log = openSync(join(this.#directory, 'server.log'), 'a');
    const child = spawn(programPath(this.#directory, 'postgres'), ['-D', this.dataDir, '-p', String(this.#port)], {
      ...programOptions(this.#directory),
      stdio: ['ignore', log, log],
      detached: true, // a terminal's Ctrl-C is not for the server
    });
    closeSync(log);
    this.#guard.watch(child.pid ?? null);
    this.#child = child;
    const forget = (): void => {
      this.#guard.watch(null);
      this.#child = null;
      this.#isPaused = false;
    };
    child.once('exit', forget);
    child.once('error', forget);
    child.unref();
    const isReady = () => this.#child === null || this.#isReady();
    await until(isReady, READY_TIMEOUT_MS, () => `PostgreSQL is not ready:\n${lastLines(this.log())}`);
    return this.#child !== null;
  }

  /** Checks the state like pg_ctl: the postmaster writes it into the eighth line. */
  #isReady(): boolean {
    const lines = this.#postmasterLines();
    return Number(lines[0]) === this.#child?.pid && lines[7]?.trim() === 'ready';
  }

  #postmasterLines(): string[] {
    const file = join(this.dataDir, 'postmaster.pid');
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  }
}

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-20).join('\n');
}
