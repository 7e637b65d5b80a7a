// Records as columns: what is cut on a terminal that is too narrow, and what never is.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toTable } from '../../src/cli/output/table.ts';

const LONG = 'a sentence that is longer than a narrow terminal has room for';
const rows = [{ path: 'prod/a/rather/long/path', result: 'fails pattern: the nearest is prod/db/*', reason: LONG }];
const columns = ['path', 'result', 'reason'];

test('long prose gives way to a narrow terminal; paths and findings do not', () => {
  const [heading = '', row = ''] = toTable(rows, columns, { isColoured: false, width: 80 }).split('\n');
  assert.equal(heading.startsWith('PATH                     RESULT'), true);
  assert.equal(row, 'prod/a/rather/long/path  fails pattern: the nearest is prod/db/*  a sentence th…');
});

test('nothing is cut where there is room, and nothing in a pipe', () => {
  for (const width of [null, 200])
    assert.equal(toTable(rows, columns, { isColoured: false, width }).includes(LONG), true);
});
