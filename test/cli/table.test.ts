// Records as columns: which columns a narrow terminal truncates, and which it never does.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toTable } from '../../src/cli/output/table.ts';

const LONG = 'a sentence that is longer than a narrow terminal has room for';
const rows = [{ path: 'prod/a/rather/long/path', result: 'fails pattern: the nearest is prod/db/*', reason: LONG }];
const columns = ['path', 'result', 'reason'];

test('on a narrow terminal long prose is truncated; paths and findings are not', () => {
  const [heading = '', row = ''] = toTable(rows, columns, { isColoured: false, width: 80 }).split('\n');
  assert.equal(heading.startsWith('PATH                     RESULT'), true);
  assert.equal(row, 'prod/a/rather/long/path  fails pattern: the nearest is prod/db/*  a sentence th…');
});

const entry = {
  seq: 12,
  timestamp: '2026-11-21T03:48:30.684Z',
  event_type: 'credential.retrieve',
  agent_name: 'deploy-bot',
  resource: 'prod/a/rather/long/path',
  result: 'denied',
  reason: LONG,
};

test('no line is wider than the terminal, and no word is broken', () => {
  const words = new Set(Object.values(entry).flatMap((value) => String(value).split(' ')));
  for (const width of [80, 100, 120]) {
    const lines = toTable([entry, entry], Object.keys(entry), { isColoured: false, width }).trimEnd().split('\n');
    assert.deepEqual(
      lines.filter((line) => line.length > width),
      [],
      `${width}`,
    );
    const shown = lines
      .flatMap((line) => line.split(/ +/))
      .filter((word) => /^[a-z]/.test(word) && !word.endsWith('…'));
    assert.deepEqual(
      shown.filter((word) => !words.has(word) && !(word in entry)),
      [],
      `${width}`,
    );
  }
});

test('a long last column is wrapped at its blanks, and so is a field of a single record', () => {
  const findings = [{ check: 'address', result: 'ok', found: LONG }];
  const look = { isColoured: false, width: 50 };
  assert.equal(
    toTable(findings, ['check', 'result', 'found'], look),
    [
      'CHECK    RESULT  FOUND',
      'address  ok      a sentence that is longer than a',
      '                 narrow terminal has room for',
      '',
    ].join('\n'),
  );
  assert.equal(
    toTable({ message: LONG }, ['message'], look),
    'message  a sentence that is longer than a narrow\n         terminal has room for\n',
  );
});
