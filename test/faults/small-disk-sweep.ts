/**
 * A program, run in its own mount namespace: starts the server on a small file system with each amount of free space,
 * and fills that file system under a running one. Prints one JSON line for each trial. Must not be run without the
 * namespace, because it mounts.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SweepRequest, Trial } from './small-disk.ts';

const SERVER = join(import.meta.dirname, '../../src/bin/server.ts');
const VALUE = 'x'.repeat(20_000);
const MIB = 1024 * 1024;
const MAX_RECOVERY_TRIES = 200;

const request: SweepRequest = JSON.parse(process.argv[2] ?? '');
const work = mkdtempSync(join(tmpdir(), 'leasehold-small-'));
const disk = join(work, 'disk');
const data = join(disk, 'data');
const ballast = join(disk, 'ballast');
mkdirSync(disk);
if (request.fileSystem === 'tmpfs') execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', disk]);
else {
  const image = join(work, 'image');
  execFileSync('truncate', ['-s', '8M', image]);
  execFileSync('mkfs.ext4', ['-q', '-F', '-m', '0', image]);
  execFileSync('mount', ['-o', 'loop', image, disk]);
}

interface Server {
  readonly child: ChildProcess;
  readonly ended: Promise<number | NodeJS.Signals | null>;
  /** Resolves to whether it serves; false if it has ended. */
  readonly isReady: Promise<boolean>;
  output(): string;
}

function launch(dataDir: string): Server {
  const child = spawn(process.execPath, [SERVER, '--data-dir', dataDir, '--listen', '127.0.0.1:0']);
  let output = '';
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.on('close', (code, signal) => resolve(code ?? signal)),
  );
  const isServing = new Promise<boolean>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
        if (output.includes('Ctrl-C stops')) resolve(true);
      });
    }
  });
  return { child, ended, isReady: Promise.race([isServing, ended.then(() => false)]), output: () => output };
}

async function call(server: Server, dataDir: string, path: string, body?: unknown): Promise<[number, string]> {
  const address = /^ {2}address +(\S+)$/m.exec(server.output())?.[1] ?? '';
  const authorization = `Bearer ${readFileSync(join(dataDir, 'daemon.token'), 'utf8').trim()}`;
  try {
    const response = await fetch(`${address}/api/v1/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return [response.status, await response.text()];
  } catch {
    return [0, ''];
  }
}

/** A vault with one credential; with a write-ahead log if it was killed. */
async function makeVault(dir: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const server = launch(dir);
  if (!(await server.isReady)) throw new Error(server.output());
  await call(server, dir, 'credentials', { path: 'kept', value: VALUE });
  server.child.kill(signal);
  await server.ended;
  if (signal === 'SIGKILL' && statSync(join(dir, 'leasehold.db-wal')).size === 0) throw new Error('no write-ahead log');
}

function fill(freeKib: number): void {
  writeFileSync(ballast, '');
  for (let blocks = 0; ; blocks++) {
    // Delayed allocation shows in the free space only then.
    execFileSync('sync', ['-f', disk]);
    const { bavail, bsize } = statfsSync(disk);
    const spare = bavail * bsize - freeKib * 1024;
    if (spare <= 0 || blocks > 16) return;
    try {
      writeFileSync(ballast, Buffer.alloc(Math.min(spare, MIB)), { flag: 'a' });
    } catch {
      return;
    }
  }
}

/** What the vault has with room again; empty if all is well. */
async function check(isExisting: boolean): Promise<string> {
  rmSync(ballast, { force: true });
  const server = launch(data);
  try {
    if (!(await server.isReady)) return server.output();
    if (isExisting && !(await call(server, data, 'credentials/kept'))[1].includes(VALUE))
      return 'the credential is lost';
    const [, verified] = await call(server, data, 'audit/verify');
    return verified.includes('"valid":true') ? '' : verified;
  } finally {
    server.child.kill('SIGTERM');
    await server.ended;
  }
}

async function start(freeKib: number): Promise<Pick<Trial, 'ended' | 'output'>> {
  fill(freeKib);
  const server = launch(data);
  const isReady = await server.isReady;
  if (isReady) server.child.kill('SIGKILL');
  const ended = await server.ended;
  return { ended: isReady ? 'served' : ended, output: server.output() };
}

/** Fills the disk under the server, stores until nothing more can be stored, and makes room again. */
async function serve(freeKib: number): Promise<Pick<Trial, 'ended' | 'output'>> {
  const server = launch(data);
  if (!(await server.isReady)) return { ended: await server.ended, output: server.output() };
  fill(freeKib);
  let status = 201;
  for (let count = 0; status === 201; count++) {
    [status] = await call(server, data, 'credentials', { path: `more/${count}`, value: VALUE });
  }
  rmSync(ballast);
  let recovered = 0;
  for (let tries = 0; tries < MAX_RECOVERY_TRIES && recovered !== 200 && server.child.exitCode === null; tries++) {
    [recovered] = await call(server, data, 'credentials/kept');
    if (recovered !== 200) await sleep(50);
  }
  const isServing = recovered === 200 && status === 503;
  server.child.kill('SIGTERM');
  const ended = await server.ended;
  return { ended: isServing && ended === 0 ? 'served' : ended, output: `${status} ${recovered} ${server.output()}` };
}

try {
  const templates = { fresh: null, existing: join(work, 'existing'), 'with a log': join(work, 'with-log') };
  await makeVault(templates.existing, 'SIGTERM');
  await makeVault(templates['with a log'], 'SIGKILL');
  for (const [state, freeKib, isServing] of request.trials) {
    rmSync(ballast, { force: true });
    rmSync(data, { recursive: true, force: true });
    const template = templates[state];
    if (template === null) mkdirSync(data, { mode: 0o700 });
    else cpSync(template, data, { recursive: true });
    const { ended, output } = await (isServing ? serve(freeKib) : start(freeKib));
    const after = await check(template !== null);
    const trial: Trial = { state, freeKib, isServing, ended, output, after };
    process.stdout.write(`${JSON.stringify(trial)}\n`);
  }
} finally {
  execFileSync('umount', ['-l', disk]);
  rmSync(work, { recursive: true, force: true });
}
