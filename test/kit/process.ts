/** The real service as a separate process, as `npm start` runs it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMPILED, SYSTEM_PATH } from './command.ts';
import { closeBeforeRemoval, type Scope } from './directory.ts';
import { databaseUrlFor, keepDatabase } from './stores.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Only a hang reaches this limit. */
const READY_TIMEOUT_MS = 120_000;

export interface ServiceProcess {
  readonly address: string;
  readonly adminToken: string;
  readonly pid: number;
  readonly child: ChildProcess;
  /** Everything printed so far, both streams. */
  output(): string;
  /** Ends it with the signal; resolves to the exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
}

interface Ended {
  readonly code: number | null;
  /** Both streams. */
  readonly output: string;
}

/** Runs the program with the flags; resolves when it has ended. */
export async function runProgram(flags: readonly string[], environment: Record<string, string> = {}): Promise<Ended> {
  const dataDir = flags[flags.indexOf('--data-dir') + 1];
  const own = flags.includes('--data-dir') ? await storeVariables(dataDir ?? '', flags) : {};
  return runToEnd(spawnProgram(flags, { ...own, ...environment }));
}

/** The environment of a service on the data directory. */
async function storeVariables(dataDir: string, flags: readonly string[]): Promise<Record<string, string>> {
  const url = await databaseUrlFor(dataDir, flags);
  return url === null ? {} : { LEASEHOLD_DATABASE_URL: url };
}

/** Runs the CLI as a process; resolves when it has ended. */
export function runCommand(words: readonly string[]): Promise<Ended> {
  return runToEnd(spawnProgram(words, {}, 'src/bin/leasehold.ts'));
}

function runToEnd(child: ChildProcess): Promise<Ended> {
  let output = '';
  child.stdout?.on('data', (chunk) => (output += chunk));
  child.stderr?.on('data', (chunk) => (output += chunk));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

interface LaunchOptions {
  readonly environment?: Record<string, string>;
  readonly nodeFlags?: readonly string[];
  /** A program and its arguments that runs the service: its own command line follows. */
  readonly under?: readonly string[];
}

/** A service that is starting, or that has failed to. */
export interface LaunchedProcess {
  readonly child: ChildProcess;
  /** Resolves to its address; rejects if it ends before it is ready. */
  readonly ready: Promise<string>;
  /** Resolves to the exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  output(): string;
}

/** Starts the service on the data directory; resolves when it reports that it is ready. */
export async function startProcess(
  scope: Scope,
  dataDir: string,
  flags: readonly string[] = [],
  options: LaunchOptions = {},
): Promise<ServiceProcess> {
  const { child, ready, ended, output } = await launchProcess(scope, dataDir, flags, options);
  return {
    address: await ready,
    adminToken: readToken(join(dataDir, 'daemon.token')),
    pid: child.pid ?? 0,
    child,
    output,
    end(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

/** The same without waiting until it is ready. */
export async function launchProcess(
  scope: Scope,
  dataDir: string,
  flags: readonly string[] = [],
  { environment = {}, nodeFlags = [], under = [] }: LaunchOptions = {},
): Promise<LaunchedProcess> {
  const variables = { ...(await storeVariables(dataDir, flags)), ...environment };
  const words = ['--data-dir', dataDir, '--listen', '127.0.0.1:0', ...flags];
  const child = spawnProgram(words, variables, undefined, nodeFlags, under);
  let output = '';
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.on('close', (code, signal) => resolve(code ?? signal)),
  );
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  void ended.then(closeBeforeRemoval(dataDir, kill));
  scope.after(kill);
  keepDatabase(scope, dataDir);
  const ready = new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not ready in time: ${output}`)), READY_TIMEOUT_MS);
    const check = (chunk: Buffer): void => {
      output += chunk;
      const found = /^ {2}address +(\S+)$/m.exec(output)?.[1];
      if (found === undefined || !output.includes('Ctrl-C stops')) return;
      clearTimeout(timer);
      resolve(found);
    };
    child.stdout?.on('data', check);
    child.stderr?.on('data', check);
    void ended.then(() => {
      clearTimeout(timer);
      reject(new Error(`ended before it was ready: ${output}`));
    });
  });
  return { child, ready, ended, output: () => output };
}

/** Empty if the service wrote none because the test passed one. */
export function readToken(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
}

/** Starts the service and kills it after that many milliseconds; resolves when it has ended. */
export async function killWhileStarting(dataDir: string, afterMs: number): Promise<void> {
  const environment = await storeVariables(dataDir, []);
  const child = spawnProgram(['--data-dir', dataDir, '--listen', '127.0.0.1:0'], environment);
  child.stdout?.resume();
  child.stderr?.resume();
  const timer = setTimeout(() => child.kill('SIGKILL'), afterMs);
  await new Promise<void>((resolve) => {
    child.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function spawnProgram(
  flags: readonly string[],
  environment: Record<string, string>,
  entry = 'src/bin/server.ts',
  nodeFlags: readonly string[] = [],
  under: readonly string[] = [],
): ChildProcess {
  const { HOME = '' } = process.env;
  const node = [process.execPath, '--disable-sigusr1', '--disable-proto=delete', ...nodeFlags, join(ROOT, entry)];
  const [program = '', ...words] = [...under, ...node, ...flags];
  return spawn(program, words, {
    env: { PATH: SYSTEM_PATH, HOME, ...COMPILED, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}
