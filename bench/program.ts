// Processes of the benchmark: the service as `npm start` runs it, and the bare ones.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Scope } from '../test/kit/directory.ts';
import { childOf } from './measurement.ts';

const ROOT = join(import.meta.dirname, '..');
const BARE = fileURLToPath(import.meta.resolve('./bare.ts'));
const HARDENING = ['--disable-sigusr1', '--disable-proto=delete'];
const READY_TIMEOUT_MS = 30_000;

export interface Program {
  readonly address: string;
  readonly pid: number;
  /** Sends SIGTERM; resolves when the process has exited. */
  stop(): Promise<void>;
}

export interface ServiceProgram extends Program {
  readonly adminToken: string;
  readonly dataDir: string;
}

/** Resolves when the service reports that it is ready. `pid` is the service's, not its launcher's. */
export async function startService(
  scope: Scope,
  dataDir: string,
  flags: readonly string[] = [],
): Promise<ServiceProgram> {
  const command = ['scripts/launch.mjs', 'src/bin/server.ts', '--data-dir', dataDir, '--listen', '127.0.0.1:0'];
  const { child, address, stop } = await run(scope, [...command, ...flags], /^ {2}address +(\S+)$/);
  const adminToken = readFileSync(join(dataDir, 'daemon.token'), 'utf8').trim();
  return { address, pid: childOf(child.pid ?? 0), adminToken, dataDir, stop };
}

export function startBare(scope: Scope): Promise<Program> {
  return startHelper(scope, BARE);
}

/** A program that prints its address. */
export async function startHelper(scope: Scope, file: string, ...args: readonly string[]): Promise<Program> {
  const { child, address, stop } = await run(scope, [...HARDENING, file, ...args], /^(https?:\S+)$/);
  return { address, pid: child.pid ?? 0, stop };
}

/** Resolves when the program has printed a line that matches; its first group is the address. */
async function run(scope: Scope, args: readonly string[], line: RegExp) {
  const child: ChildProcess & { stdout: NodeJS.ReadableStream } = spawn(process.execPath, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const stop = (): Promise<void> => {
    child.kill('SIGTERM');
    return exited;
  };
  scope.after(stop);
  const address = await new Promise<string>((resolve, reject) => {
    const fail = (): void => reject(new Error(`${args.join(' ')}: not ready in time`));
    const timer = setTimeout(fail, READY_TIMEOUT_MS);
    void exited.then(fail);
    createInterface({ input: child.stdout }).on('line', (text) => {
      const match = line.exec(text)?.[1];
      if (match === undefined) return;
      clearTimeout(timer);
      resolve(match);
    });
  });
  return { child, address, stop };
}
