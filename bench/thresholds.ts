// The fifteen figures of docs/performance.md, and the thresholds that the project set itself for some of them.

import type { Figure } from './types.ts';

type Threshold = readonly [sign: '<' | '≤' | '≥', limit: number];

/** A row of the page's table: its label and the measures in it. A figure is named by the label and the measure. */
export const PAGE_ROWS: readonly (readonly [label: string, ...measures: string[]])[] = [
  ['Start to ready, empty directory'],
  ['Memory at rest'],
  ['Memory under full load, large vault'],
  ['Retrieval, 1 connection', 'rate', 'p50', 'p99'],
  ['Retrieval, 64 connections', 'rate', 'p50', 'p99'],
  ['Retrieval at half of full load', 'p99'],
  ['Retrieval rate relative to bare Fastify'],
  ['Cost of a retrieval', 'processor time', 'disk'],
  ['Retrieval rate, large vault relative to small'],
  ['Logins', 'rate', 'p99'],
  ['Stores', 'rate', 'p99'],
  ['Verification of the log'],
  ['Decision among 10,000 policies'],
  ['Two nodes on PostgreSQL', 'rate', 'p99'],
  ['Failover, from promotion to the first value'],
];

const THRESHOLDS: Readonly<Record<string, Threshold>> = {
  'Start to ready, empty directory': ['<', 1000],
  'Start to ready, large vault': ['≤', 1000],
  'Memory at rest': ['<', 140],
  'Memory under full load, large vault': ['≤', 300],
  'Retrieval at half of full load, p99': ['≤', 5],
  'Retrieval rate relative to bare Fastify': ['≥', 0.5],
  'Retrieval rate, large vault relative to small': ['≥', 0.9],
  'Added by a use to a bare forwarder, p50': ['≤', 1.5],
  'Use rate relative to a bare forwarder': ['≥', 0.5],
  'Lag of events in 20 streams, p99': ['≤', 10],
  'Stores with the tree relative to without, 64 connections, rate': ['≥', 0.95],
  'Retrieval with the tree relative to without, 64 connections, rate': ['≥', 0.95],
  'Stores with the tree relative to without on PostgreSQL, 64 connections, rate': ['≥', 0.95],
  'Retrieval with the tree relative to without on PostgreSQL, 64 connections, rate': ['≥', 0.95],
  'Receipt, p99': ['≤', 5],
  'Consistency proof, p99': ['≤', 5],
  'Receipt on PostgreSQL, p99': ['≤', 5],
  'Consistency proof on PostgreSQL, p99': ['≤', 5],
  'Console, first load': ['≤', 150],
  'Console, first load to interactive': ['≤', 1000],
  'Console, scrolling 1,000,000 entries': ['≥', 55],
  'Console, filter of 1,000,000 entries': ['≤', 300],
  'Answer on another node to the response, 1,000 waiting, p99': ['<', 200],
  'Logins, rate': ['≥', 4000],
  'Verification of the log': ['≥', 500_000],
  'Retrieval p99 during verification relative to without': ['≤', 2],
  'Decision among 10,000 policies': ['≤', 2],
  'Two nodes on PostgreSQL, rate': ['≥', 10_000],
  'Two nodes on PostgreSQL, p99': ['≤', 60],
  'Failover, from promotion to the first value': ['≤', 5000],
};

/** For example `≥ 4,000, met`; '' where the figure has no threshold. */
export function describeThreshold({ name, value }: Pick<Figure, 'name' | 'value'>): string {
  const threshold = THRESHOLDS[name];
  if (threshold === undefined) return '';
  const [sign, limit] = threshold;
  const isMet = sign === '≥' ? value >= limit : sign === '≤' ? value <= limit : value < limit;
  return `${sign} ${limit.toLocaleString('en-US')}, ${isMet ? 'met' : 'missed'}`;
}
