// Processes of the bench: the service exactly as `npm start` runs it once everything is installed, and programs of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Scope } from '../test/kit/directory.ts';
import { childOf } from './measure.ts';

const ROOT = join(import.meta.dirname, '..');
const HARDENING = ['--disable-sigusr1', '--disable-proto=throw'];
const READY_WITHIN_MS = 30_000;

export interface Program {
  readonly address: string;
  readonly pid: number;
  /** Ends it in peace; resolves when it has ended. */
  stop(): Promise<void>;
}

export interface ServiceProgram extends Program {
  readonly adminToken: string;
  readonly dataDir: string;
}

/** Resolves when the service has said that it is ready. `pid` is the service's own, not its launcher's. */
export async function startService(
  scope: Scope,
  dataDir: string,
  flags: readonly string[] = [],
): Promise<ServiceProgram> {
  const own = ['--data-dir', dataDir, '--listen', '127.0.0.1:0', ...flags];
  const launcher = ['scripts/launch.mjs', 'src/bin/server.ts', ...own];
  const { child, stop, waitFor } = run(scope, launcher);
  const address = await waitFor(/^ {2}address +(\S+)$/);
  return {
    address,
    pid: childOf(child.pid ?? 0),
    adminToken: readFileSync(join(dataDir, 'daemon.token'), 'utf8').trim(),
    dataDir,
    stop,
  };
}

export async function startBare(scope: Scope): Promise<Program> {
  const { child, stop, waitFor } = run(scope, [...HARDENING, fileURLToPath(import.meta.resolve('./bare.ts'))]);
  return { address: await waitFor(/^(http:\S+)$/), pid: child.pid ?? 0, stop };
}

interface Running {
  readonly child: ChildProcess;
  stop(): Promise<void>;
  /** Resolves to the first group of the first line that fits. */
  waitFor(line: RegExp): Promise<string>;
}

function run(scope: Scope, args: readonly string[]): Running {
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const stop = (): Promise<void> => {
    child.kill('SIGTERM');
    return ended;
  };
  scope.after(stop);
  return {
    child,
    stop,
    waitFor: (pattern) =>
      new Promise((resolve, reject) => {
        const fail = (): void => reject(new Error(`${args.join(' ')}: not ready in time`));
        const timer = setTimeout(fail, READY_WITHIN_MS);
        void ended.then(fail);
        createInterface({ input: child.stdout }).on('line', (line) => {
          const found = pattern.exec(line)?.[1];
          if (found === undefined) return;
          clearTimeout(timer);
          resolve(found);
        });
      }),
  };
}
