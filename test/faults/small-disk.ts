/** Starts and loads the server on small file systems: `small-disk-sweep.ts` in a mount namespace of its own. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';

type FileSystem = 'tmpfs' | 'ext4';
type VaultKind = 'fresh' | 'existing' | 'with a log';
type Step = readonly [state: VaultKind, freeKib: number, isServing: boolean];

export interface SweepRequest {
  readonly fileSystem: FileSystem;
  readonly trials: readonly Step[];
}

export interface Trial {
  readonly state: VaultKind;
  readonly freeKib: number;
  readonly isServing: boolean;
  /** The exit code or the signal; `served` if the server ran, and with room again recovered without a restart. */
  readonly ended: number | NodeJS.Signals | 'served' | null;
  readonly output: string;
  /** The faults of the vault when there is room again; empty if there is none. */
  readonly after: string;
}

const PROGRAM = join(import.meta.dirname, 'small-disk-sweep.ts');

/** The words that run a program where it may mount; null where it cannot. */
function namespaceFor(fileSystem: FileSystem): readonly string[] | null {
  const isRoot = process.getuid?.() === 0;
  if (fileSystem === 'ext4' && !isRoot) return null;
  const words = ['unshare', ...(isRoot ? [] : ['--user', '--map-root-user']), '--mount'];
  const trial = fileSystem === 'ext4' ? 'mkfs.ext4 -V && test -e /dev/loop-control' : 'mount -t tmpfs tmpfs /mnt';
  try {
    execFileSync(words[0] ?? '', [...words.slice(1), 'sh', '-c', trial], { stdio: 'ignore' });
    return words;
  } catch {
    return null;
  }
}

/** Checks each trial: an end by a signal, a line that names another cause, and a loss fail the test. */
export async function sweep(t: TestContext, request: SweepRequest): Promise<readonly Trial[]> {
  const namespace = namespaceFor(request.fileSystem);
  if (namespace === null) {
    t.diagnostic(`${request.fileSystem} cannot be mounted here, so nothing was tried`);
    return [];
  }
  const [command = '', ...words] = [...namespace, process.execPath, PROGRAM, JSON.stringify(request)];
  const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  const trials: Trial[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const trial: Trial = JSON.parse(line);
    trials.push(trial);
    assertHandled(trial);
  }
  assert.equal(await exited, 0);
  assert.equal(trials.length, request.trials.length);
  return trials;
}

function assertHandled(trial: Trial): void {
  const text = JSON.stringify(trial);
  assert.equal(trial.after, '', text);
  if (trial.ended === 'served') return;
  assert.equal(trial.ended, 1, text);
  assert.match(trial.output, /^leasehold: .*the disk is full/im, text);
  assert.doesNotMatch(trial.output, /restore|damaged|altered/i, text);
}
