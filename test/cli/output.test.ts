// A terminal: text from other users is escaped, records are columns that fit it, long work shows its progress, and a
// key counts only if it was pressed after the question.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { KeyPresses } from '../../src/cli/approvals/key-presses.ts';
import type { Format } from '../../src/cli/output/cells.ts';
import { createOutput, toTable } from '../../src/cli/output/output.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { standBetween } from '../client/fault-proxy.ts';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

const WRITTEN = 'a\u001b[31m\u009b\u202eb\u2028c\u{e0041}\n\u0007d';
const RECORD = { path: 'a/b', description: WRITTEN };
const STEERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

async function print(format: Format, isTTY: boolean, environment = { NO_COLOR: '1' }): Promise<string> {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const stderr = new PassThrough();
  const terminal = {
    stdin: new PassThrough(),
    stdout,
    stderr,
    environment,
    workingDirectory: '.',
    umask: 0o022,
    challengeServer: async () => null,
  };
  const output = createOutput(terminal, format, null);
  await output.record(RECORD);
  await output.records([RECORD], Object.keys(RECORD), null);
  output.jsonLine(RECORD);
  output.variable('NAME', WRITTEN);
  stdout.end();
  return text(stdout);
}

const LONG = 'a sentence that is longer than a narrow terminal has room for';
const rows = [{ path: 'prod/a/rather/long/path', result: 'fails pattern: the nearest is prod/db/*', reason: LONG }];
const columns = ['path', 'result', 'reason'];

const entry = {
  seq: 12,
  timestamp: '2026-11-21T03:48:30.684Z',
  event_type: 'credential.retrieve',
  agent_name: 'deploy-bot',
  resource: 'prod/a/rather/long/path',
  result: 'denied',
  reason: LONG,
};

const KEYS = ['a', 's'];

/** A terminal whose text `onText` gets as it is shown, and whose quiet times end when the test ends them. */
function openTerminal(onText: (text: string, type: (keys: string) => void) => void = () => undefined) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  let screen = '';
  const type = (keys: string): void => void stdin.write(keys);
  const stderr = new Writable({
    write(chunk, _encoding, done) {
      screen += chunk;
      onText(String(chunk), type);
      done();
    },
  });
  const terminal: Partial<Terminal> = { stdin, stderr: Object.assign(stderr, { isTTY: true }) };
  const quietTimes: (() => void)[] = [];
  const keys = new KeyPresses(
    terminal as Terminal,
    () => new Promise<void>((resolve) => void quietTimes.push(resolve)),
  );
  /** Types the keys, if any, in the next quiet time, and ends it. */
  const passQuiet = async (typed = ''): Promise<void> => {
    while (quietTimes.length === 0) await immediate();
    if (typed !== '') type(typed);
    for (let turn = 0; turn < 5; turn++) await immediate();
    quietTimes.shift()?.();
    for (let turn = 0; turn < 5; turn++) await immediate();
  };
  const ask = () => keys.ask('the card', '[a] [s] ', KEYS, new AbortController().signal);
  return { keys, type, passQuiet, ask, screen: () => screen };
}

const service = await startTestService({ after });

/** Delays responses. */
const between = await standBetween({ after }, service);

const home = newHome({ after }, { LEASEHOLD_ADDR: between.address, LEASEHOLD_TOKEN: service.adminToken });
const { onTerminal } = home;

/** The bar is redrawn from the beginning of its line, which is empty at the end. */
const CLEARED = '\r\u001b[K';

for (const format of ['table', 'json', 'yaml', 'env'] as const) {
  test(`no output controls the terminal: -o ${format}`, async () => {
    const shown = await print(format, true);
    assert.doesNotMatch(shown.replaceAll('\n', ''), STEERS);
    assert.match(shown, /\\u202e/);
  });
}

test('a table has colours on a terminal, unless NO_COLOR is set, whatever the process itself writes to', async () => {
  assert.ok((await print('table', true, { NO_COLOR: '' })).includes('\u001b[1mpath'));
  assert.equal((await print('table', true)).includes('\u001b'), false);
  assert.equal((await print('table', false, { NO_COLOR: '' })).includes('\u001b[1m'), false);
});

test('a pipe receives every byte', async () => {
  for (const format of ['json', 'env'] as const) assert.ok((await print(format, false)).includes('\u202eb'), format);
  assert.ok((await print('env', false)).includes(`NAME='${WRITTEN}'\n`));
});

test('on a narrow terminal long prose is truncated; paths and findings are not', () => {
  const [heading = '', row = ''] = toTable(rows, columns, { isColoured: false, width: 80 }).split('\n');
  assert.equal(heading.startsWith('PATH                     RESULT'), true);
  assert.equal(row, 'prod/a/rather/long/path  fails pattern: the nearest is prod/db/*  a sentence th…');
});

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

test('a key that is pressed while the text is shown, before the prompt, does not count', async () => {
  const { keys, type, passQuiet, ask, screen } = openTerminal((text, press) => {
    if (text === 'the card') press('a');
  });
  using _ = keys;
  const asked = ask();
  await passQuiet();
  assert.equal(screen(), 'the card[a] [s] ');
  type('s');
  assert.equal(await asked, 's');
});

test('while a key is held down the prompt is not shown, and no repetition of it counts', async () => {
  const { keys, type, passQuiet, ask, screen } = openTerminal();
  using _ = keys;
  const asked = ask();
  for (let times = 0; times < 8; times++) {
    await passQuiet('a');
    assert.equal(screen(), 'the card');
  }
  await passQuiet();
  assert.equal(screen(), 'the card[a] [s] ');
  // Several characters are a paste.
  type('aa');
  await immediate();
  type('s');
  assert.equal(await asked, 's');
});

test('an import shows how many credentials it has stored', async () => {
  writeFileSync(join(home.path, '.env'), Array.from({ length: 24 }, (_, at) => `NAME_${at}=value-${at}\n`).join(''));
  const { promise: isShown, resolve: goOn } = Promise.withResolvers<void>();
  // The bar is drawn after a while; then the rest waits until it is seen.
  for (let at = 0; at < 8; at++) between.next({ after: () => sleep(300) }, ({ method }) => method === 'POST');
  for (let at = 8; at < 24; at++) between.next({ after: isShown }, ({ method }) => method === 'POST');
  const importing = onTerminal(['import', '.env', '--all', '--prefix', 'a', '--yes', '--field', 'result']);
  await importing.shows(/Storing {2}█+░+ {2}\d+ of 24/);
  goOn();
  assert.equal((await importing.ended).exitCode, 0);
  assert.ok(importing.screen().includes(CLEARED));
});

test('a verification shows how many entries the server has checked', async () => {
  const body = { running: true, entries_checked: 500, entries_total: 2000, started_at: '2026-01-01T00:00:00.000Z' };
  const isProgress = ({ path }: { path: string }) => path.endsWith('/progress');
  const { promise: isShown, resolve: endCheck } = Promise.withResolvers<void>();
  between.next({ after: isShown }, ({ path }) => path.endsWith('/verify'));
  // A hostile server's text instead of a number is not shown.
  for (const entries_checked of ['\u001b]0;taken\u0007', 500, 500, 500, 500, 500, 500, 500, 500]) {
    between.next({ status: 200, body: JSON.stringify({ data: { ...body, entries_checked } }) }, isProgress);
  }
  const verifying = onTerminal(['audit', 'verify', '--field', 'valid']);
  await verifying.shows(/Verifying {2}█{8}░{22} {2}500 of 2,000/);
  endCheck();
  assert.equal((await verifying.ended).exitCode, 0);
  assert.ok(verifying.screen().endsWith(`${CLEARED}true\n`), verifying.screen());
  assert.equal(verifying.screen().includes('taken'), false);
});

test('an export shows how many entries it has written', async () => {
  await home.leasehold(['put', 'a', '-'], { input: 'x' });
  const { promise: isShown, resolve: goOn } = Promise.withResolvers<void>();
  between.next({ slowlyUntil: isShown }, ({ path }) => path.endsWith('/export'));
  const exporting = onTerminal(['audit', 'export', '--out', 'log']);
  await exporting.shows(/Exporting {2}█+░* {2}\d+ of \d+/);
  goOn();
  assert.equal((await exporting.ended).exitCode, 0);
  assert.match(exporting.screen(), /Wrote \d+ entries/);
});
