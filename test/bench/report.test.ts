// The benchmark's arithmetic and its report, without any load.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { compare, retrievals } from '../../bench/compare.ts';
import { median, percentile, toFigure } from '../../bench/measurement.ts';
import { PLANS } from '../../bench/plan.ts';
import { formatNumber, type Run, readReport, replaceTable, toJson, toTable, toText } from '../../bench/report.ts';
import { describeThreshold, PAGE_ROWS } from '../../bench/thresholds.ts';
import type { LoadJob } from '../../bench/types.ts';
import { temporaryDirectory } from '../kit/directory.ts';

const DOCS = join(import.meta.dirname, '../../docs');

test('a median is the middle value, or the mean of the two in the middle', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([7]), 7);
});

test('a percentile is the value below which that share of the values lies', () => {
  const thousand = Array.from({ length: 1000 }, (_, index) => index);
  assert.deepEqual(
    [0.5, 0.99, 0.999, 1].map((share) => percentile(thousand, share)),
    [500, 990, 999, 999],
  );
  assert.equal(percentile([], 0.5), 0);
});

test('a figure is the median of its rounds, with the smallest and the largest', () => {
  assert.deepEqual(toFigure('a', 'ms', [5, 1, 3]), { name: 'a', unit: 'ms', rounds: 3, value: 3, low: 1, high: 5 });
});

test('numbers have three significant digits, and all digits before the point', () => {
  assert.deepEqual([0.0123, 0.5, 4.567, 45.67, 456.7, 1234567].map(formatNumber), [
    '0.012',
    '0.500',
    '4.57',
    '45.7',
    '457',
    '1,234,567',
  ]);
});

test('a threshold holds at its limit, except one that says below', () => {
  const describe = (name: string, value: number): string => describeThreshold({ name, value });
  assert.equal(describe('Memory at rest', 139), '< 140, met');
  assert.equal(describe('Memory at rest', 140), '< 140, missed');
  assert.equal(describe('Logins, rate', 4000), '≥ 4,000, met');
  assert.equal(describe('Logins, rate', 3999), '≥ 4,000, missed');
  assert.equal(describe('Decision among 10,000 policies', 2), '≤ 2, met');
  assert.equal(describe('Decision among 10,000 policies', 2.1), '≤ 2, missed');
  assert.equal(describe('Stores, rate', 1), '');
});

test('rounds alternate in changing order and are as long as the warm-up suggests', async () => {
  const calls: string[] = [];
  const side = (name: string, perSecond: number) => ({
    name,
    run(amount: number) {
      calls.push(`${name} ${amount}`);
      return Promise.resolve({ answered: amount, perSecond, p50Ms: 0, p99Ms: 0 });
    },
  });
  const stage = {
    plan: { ...PLANS.trial, rounds: 2 },
    say: () => {},
    scope: { after: () => {} },
    generator: { run: (job: LoadJob) => side('c', 10).run(job.kind === 'retrievals' ? job.amount : 0) },
  };
  const rounds = await compare(stage, [side('a', 100), side('b', 1000)], { warmUp: 30, seconds: 0.5 });
  assert.deepEqual(calls, ['a 30', 'a 10', 'b 30', 'b 10', 'a 50', 'b 500', 'b 500', 'a 50']);
  assert.deepEqual(
    rounds.map((each) => each.map(({ answered }) => answered)),
    [
      [50, 50],
      [500, 500],
    ],
  );
  calls.length = 0;
  const program = { address: '', pid: process.pid, stop: () => Promise.resolve() };
  const server = retrievals(stage, 'c', program, { address: '', credentials: 1, agents: 1 }, 8);
  await compare(stage, [server], { warmUp: 30, seconds: 0.5 });
  assert.deepEqual(calls, ['c 30', 'c 10', 'c 8', 'c 8'], 'at least one request for each connection');
});

const run = (...figures: Run['figures']): Run => ({
  plan: 'full',
  date: '2026-01-31',
  commit: '0123456789ab',
  machine: '2 × something',
  generator: 'wrk',
  figures,
});

test('a terminal shows each figure next to the committed one of that name', () => {
  const text = toText(
    run(toFigure('Memory at rest', 'MiB', [90, 100, 1250]), toFigure('Another', '', [0.5])),
    run(toFigure('Memory at rest', 'MiB', [110])),
  );
  assert.match(text, /^full run of 2026-01-31 at 0123456789ab; load from wrk; 2 × something$/m);
  assert.match(text, /^figure +now +committed 2026-01-31 +threshold$/m);
  assert.match(text, /^Memory at rest {2}100 MiB \(90\.0 to 1,250\) {2}110 +< 140, met$/m);
  assert.match(text, /^Another +0\.500$/m);
});

test('the page has fifteen figures, from the committed report', () => {
  assert.equal(PAGE_ROWS.length, 15);
  const page = readFileSync(join(DOCS, 'performance.md'), 'utf8');
  assert.ok(page.includes(`\n${toTable(readReport(join(DOCS, 'performance.json')))}\n`), 'run npm run bench -- --page');
  assert.throws(() => toTable({}), /lacks the figure "Start to ready, empty directory"/);
});

test('writing the page replaces the table and nothing else', (t) => {
  const file = join(temporaryDirectory(t), 'page.md');
  const marks = ['<!-- written by npm run bench -- --page -->', '<!-- end of the table -->'] as const;
  writeFileSync(file, `# Title\n\n${marks[0]}\nold\n${marks[1]}\n\nMore.\n`);
  for (let time = 0; time < 2; time++) {
    replaceTable(file, 'new $& $1');
    assert.equal(readFileSync(file, 'utf8'), `# Title\n\n${marks[0]}\n\nnew $& $1\n\n${marks[1]}\n\nMore.\n`);
  }
  writeFileSync(file, `${marks[1]}\n${marks[0]}`);
  assert.throws(() => replaceTable(file, 'new'), /needs the lines/);
});

test('a report is read as it was written, and a missing file is an empty report', (t) => {
  const file = join(temporaryDirectory(t), 'report.json');
  assert.deepEqual(readReport(file), {});
  const report = { sqlite: run(toFigure('a', 'ms', [1])) };
  writeFileSync(file, toJson(report));
  assert.deepEqual(readReport(file), report);
});
