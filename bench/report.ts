// The figures, held against what is required, as a table for people.

import { availableParallelism, cpus } from 'node:os';
import type { RetrievalFigures, Side } from './retrieval.ts';
import type { StartFigures } from './startup.ts';
import type { VerificationFigures } from './verification.ts';

/** Says how far the bench is. */
export type Say = (line: string) => void;

export interface Measured {
  readonly retrieval: RetrievalFigures;
  readonly verification: VerificationFigures;
  readonly start: StartFigures;
}

interface Figure {
  readonly name: string;
  readonly measured: string;
  readonly required: string;
  readonly isMet: boolean;
}

const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

// SOURCE: issue 2, "Figures it must show".
export function judge({ retrieval, verification, start }: Measured): Figure[] {
  return [
    {
      name: 'Retrieval as an agent, 64 connections, of a bare Fastify route',
      measured: retrieval.ratio.toFixed(3),
      required: '≥ 0.25',
      isMet: retrieval.ratio >= 0.25,
    },
    {
      name: 'Verification of the audit log, entries a second',
      measured: whole(verification.perSecond),
      required: '≥ 250,000',
      isMet: verification.perSecond >= 250_000,
    },
    {
      name: 'Start to ready on an empty directory, ms',
      measured: whole(start.readyMs),
      required: '< 1,000',
      isMet: start.readyMs < 1000,
    },
    {
      name: 'Memory at rest, MiB',
      measured: start.restMiB.toFixed(1),
      required: '< 120',
      isMet: start.restMiB < 120,
    },
  ];
}

export function machine(): string {
  return `${availableParallelism()} × ${cpus()[0]?.model.trim()}, ${process.platform}, Node ${process.versions.node}`;
}

export function toTable(figures: readonly Figure[]): string {
  const rows = [
    ['figure', 'measured', 'required', 'verdict'],
    ...figures.map(({ name, measured, required, isMet }) => [name, measured, required, isMet ? 'met' : 'MISSED']),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return [lines[0], widths.map((width) => '-'.repeat(width)).join('  '), ...lines.slice(1)].join('\n');
}

/** What stands behind the figures. */
export function toDetails({ retrieval, verification }: Measured): string {
  const { service, bare, ratioRange, answered } = retrieval;
  const side = (name: string, { perSecond, p50Ms, p99Ms, cpuMicroseconds, generatorBusy }: Side): string =>
    [
      `${name.padEnd(13)} ${whole(perSecond)}/s, p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
      ...(cpuMicroseconds === null ? [] : [`${cpuMicroseconds.toFixed(1)} µs of processor a request`]),
      `generator ${(generatorBusy * 100).toFixed(0)} % of a core`,
    ].join(', ');
  const cpu =
    service.cpuMicroseconds === null || bare.cpuMicroseconds === null
      ? ''
      : `; by processor time, whatever the generator takes, ${(bare.cpuMicroseconds / service.cpuMicroseconds).toFixed(3)}`;
  return [
    side('Leasehold', service),
    side('bare Fastify', bare),
    `The ratio was ${ratioRange.map((ratio) => ratio.toFixed(3)).join(' to ')} by round${cpu}.`,
    `All of ${whole(answered)} retrievals were answered 200; the log grew by exactly as many entries, and its chain verifies.`,
    `Verified: ${whole(verification.entries)} entries, ${whole(verification.added)} of them added through the store's port.`,
    'Load: autocannon, one process, 64 connections kept busy (closed loop). It shares the cores with what it measures:',
    'on two cores each has about one, and a server faster than the generator looks slower than it is.',
  ].join('\n');
}
