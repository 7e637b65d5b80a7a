// Text from other users is escaped on a terminal and byte for byte in a pipe; records are columns that fit a terminal.

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { Format } from '../../src/cli/output/cells.ts';
import { createOutput } from '../../src/cli/output/output.ts';
import { toTable } from '../../src/cli/output/table.ts';

const WRITTEN = 'a\u001b[31m\u009b\u202eb\u2028c\u{e0041}\n\u0007d';
const RECORD = { path: 'a/b', description: WRITTEN };
const STEERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

async function print(format: Format, isTTY: boolean): Promise<string> {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const stderr = new PassThrough();
  const terminal = {
    stdin: new PassThrough(),
    stdout,
    stderr,
    environment: {},
    workingDirectory: '.',
    umask: 0o022,
    challengeService: async () => null,
  };
  const output = createOutput(terminal, format, null);
  await output.record(RECORD);
  await output.records([RECORD], Object.keys(RECORD), null);
  output.jsonLine(RECORD);
  output.variable('NAME', WRITTEN);
  stdout.end();
  return text(stdout);
}

for (const format of ['table', 'json', 'yaml', 'env'] as const) {
  test(`no output controls the terminal: -o ${format}`, async () => {
    const shown = await print(format, true);
    assert.doesNotMatch(shown.replaceAll('\n', ''), STEERS);
    assert.match(shown, /\\u202e/);
  });
}

test('a pipe receives every byte', async () => {
  for (const format of ['json', 'env'] as const) assert.ok((await print(format, false)).includes('\u202eb'), format);
  assert.ok((await print('env', false)).includes(`NAME='${WRITTEN}'\n`));
});

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
