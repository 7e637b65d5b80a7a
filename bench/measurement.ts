// Statistics over rounds, and the memory and processor time of processes.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Figure } from './types.ts';

const IS_LINUX = process.platform === 'linux';
// SOURCE: proc(5): times in /proc/PID/stat are in ticks, a hundred a second on every Linux that Node runs on.
const TICKS_PER_SECOND = 100;
const MEMORY_INTERVAL_MS = 100;

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

/** Resident memory of the process, in MiB. */
export function residentMiB(pid: number): number {
  const kib = IS_LINUX
    ? /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    : ps('-o', 'rss=', '-p', String(pid)).trim();
  return Number(kib) / 1024;
}

/** Samples the memory of a process. The returned function ends this and returns the maximum, in MiB. */
export function watchMemory(pid: number): () => number {
  let maximum = residentMiB(pid);
  const timer = setInterval(() => {
    maximum = Math.max(maximum, residentMiB(pid));
  }, MEMORY_INTERVAL_MS);
  return () => {
    clearInterval(timer);
    return Math.max(maximum, residentMiB(pid));
  };
}

/** Processor time of the process and its threads, in seconds; 0 where /proc does not have it. */
export function processorSeconds(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
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

/** `values`: one of each round. */
export function toFigure(name: string, unit: string, values: readonly number[]): Figure {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return { name, unit, rounds: values.length, value: median(values), low, high };
}
