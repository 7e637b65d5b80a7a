// Measuring processes from outside, and summing up.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Measure } from './types.ts';

const IS_LINUX = process.platform === 'linux';
// SOURCE: proc(5): times in /proc/PID/stat are in ticks, a hundred a second on every Linux that Node runs on.
const TICKS_PER_SECOND = 100;
const MEMORY_LOOK_MS = 100;

function ps(...args: string[]): string {
  return execFileSync('ps', args, { encoding: 'utf8' });
}

/** The only child of a process. */
export function childOf(pid: number): number {
  const children = IS_LINUX
    ? readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    : ps('-A', '-o', 'pid=,ppid=').match(new RegExp(String.raw`^ *\d+(?= +${pid}$)`, 'm'))?.[0];
  const child = Number.parseInt(children ?? '', 10);
  if (Number.isNaN(child)) throw new Error(`process ${pid} has no child`);
  return child;
}

/** What the process holds in memory, in MiB. */
export function residentMiB(pid: number): number {
  const kib = IS_LINUX
    ? /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    : ps('-o', 'rss=', '-p', String(pid)).trim();
  return Number(kib) / 1024;
}

/** The processor time that the process and its threads have used, in seconds; null where the system does not tell. */
export function processorSeconds(pid: number): number | null {
  if (!IS_LINUX) return null;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [Math.floor((sorted.length - 1) / 2), Math.floor(sorted.length / 2)];
  return ((sorted[low] ?? 0) + (sorted[high] ?? 0)) / 2;
}

/** The value below which that share of the values lies. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** The rounds in one: their median, and how far they lay apart. */
export function sumUp(values: readonly number[]): Measure {
  return { value: median(values), low: Math.min(...values), high: Math.max(...values) };
}

/** The most that the process holds from now on until it is asked, in MiB. */
export function watchMemory(pid: number): () => number {
  let most = residentMiB(pid);
  const timer = setInterval(() => {
    most = Math.max(most, residentMiB(pid));
  }, MEMORY_LOOK_MS);
  return () => {
    clearInterval(timer);
    return Math.max(most, residentMiB(pid));
  };
}
