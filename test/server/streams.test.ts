// Log streams to real receivers: every entry as in the export, in order, at least once, also if receivers fail.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { UsageError } from '../../src/platform/errors.ts';
import { CheckpointSinks } from '../../src/server/checkpoint-files.ts';
import { parseStreams } from '../../src/server/flag-values.ts';
import { LogStream } from '../../src/server/log-streams.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import {
  assertComplete,
  type HttpCall,
  type LogEntry,
  startHttpReceiver,
  until,
  WEBHOOK_KEY,
  webhookStream,
} from '../kit/log-receivers.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { openVault, put } from '../vault/fixture.ts';

const CREDENTIALS = '/api/v1/credentials';
const WEBHOOK = { stream: 'webhook' };
/** The complete lines; none if the file is missing. */
const readLines = (file: string): LogEntry[] =>
  (existsSync(file) ? readFileSync(file, 'utf8') : '')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
const exported = async ({ admin }: TestService): Promise<LogEntry[]> =>
  (await admin.get('/api/v1/audit/export')).text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

function tokenFile(t: TestContext, text: string): string {
  const file = join(temporaryDirectory(t), 'token');
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

async function fill({ admin }: TestService, count: number): Promise<void> {
  await admin.post(CREDENTIALS, { path: 'a/b', value: 'a value', description: 'ä ö ü 🔑' });
  for (let number = 0; number < count; number++) await admin.get(`${CREDENTIALS}/a/b`);
}

test('a file gets every entry as in the export, and a new file after a rotation', async (t) => {
  const file = join(temporaryDirectory(t), 'log.ndjson');
  const service = await startTestService(t, ['--log-stream', `file:${file}`]);
  await fill(service, 10);
  await until(() => readLines(file).length === 12);
  assert.deepEqual(readLines(file), await exported(service));
  renameSync(file, `${file}.1`);
  await fill(service, 3);
  await until(() => readLines(file).length === 4);
  assertComplete(
    [...readLines(`${file}.1`), ...readLines(file)].map(({ seq }) => seq),
    16,
  );
  await service.stop();
  assert.equal(readLines(file).at(-1)?.event_type, 'service.stop');
});

test('a restarted service continues where the stream was, and an unfinished line is left alone', async (t) => {
  const file = join(temporaryDirectory(t), 'log.ndjson');
  const dataDir = join(temporaryDirectory(t), 'data');
  const flags = ['--log-stream', `file:${file}`];
  const first = await startTestService(t, flags, dataDir);
  await fill(first, 5);
  await first.stop();
  const before = readLines(file).length;
  writeFileSync(file, '{"seq":', { flag: 'a' });
  const second = await startTestService(t, flags, dataDir);
  await fill(second, 2);
  await until(() => readFileSync(file, 'utf8').trimEnd().split('\n').length >= before + 5);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  assert.equal(lines[before], '{"seq":');
  const seqs = lines.filter((line) => line !== '{"seq":').map((line) => JSON.parse(line).seq);
  assert.deepEqual(
    seqs,
    Array.from({ length: seqs.length }, (_, index) => index + 1),
  );
});

test('a webhook is signed as Standard Webhooks says, and repeated until it succeeds', async (t) => {
  const entries: LogEntry[] = [];
  let [calls, failures] = [0, 0];
  const verify = ({ headers, body }: HttpCall): void => {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const expected = createHmac('sha256', WEBHOOK_KEY).update(signed).digest('base64');
    assert.equal(headers['webhook-signature'], `v1,${expected}`);
    assert.ok(Math.abs(Number(headers['webhook-timestamp']) - Date.now() / 1000) < 60);
    assert.equal(headers['authorization'], 'Bearer a-token');
  };
  const port = await startHttpReceiver(t, (call, response) => {
    verify(call);
    calls += 1;
    if (calls % 2 === 1) {
      failures += 1;
      response.writeHead([500, 429, 302][failures % 3] ?? 500, { location: '/elsewhere', 'retry-after': '1' }).end();
      return;
    }
    const { type, data } = JSON.parse(call.body);
    assert.equal(type, 'audit.entries');
    const seqs = data.entries.map(({ seq }: LogEntry) => seq);
    assert.equal(call.headers['webhook-id'], `audit-${seqs[0]}-${seqs.at(-1)}-${data.entries.at(-1).hmac}`);
    entries.push(...data.entries);
    response.end('{}');
  });
  const service = await startTestService(t, [
    ...webhookStream(t, `http://127.0.0.1:${port}/hook`),
    '--log-stream-token-file',
    tokenFile(t, 'a-token\n'),
  ]);
  await fill(service, 10);
  await until(() => entries.length === 12);
  assert.deepEqual(entries, await exported(service));
  // They are counted once the last response was read.
  const lag = async () => seriesValue(await scrape(service.address), 'leasehold_stream_lag_entries', WEBHOOK);
  await until(async () => (await lag()) === 0);
  const families = await scrape(service.address);
  assert.equal(seriesValue(families, 'leasehold_stream_failures_total', WEBHOOK), failures);
});

test('a receiver with TLS gets entries from those who trust its authority, and nothing from others', async (t) => {
  const certificate = makeCertificate(t);
  let received = 0;
  const count = ({ body }: HttpCall, response: ServerResponse): void => {
    received += JSON.parse(body).data.entries.length;
    response.end();
  };
  const stream = webhookStream(t, `https://localhost:${await startHttpReceiver(t, count, certificate)}/`);
  const { address } = await startTestService(t, stream);
  await until(async () => seriesValue(await scrape(address), 'leasehold_stream_failures_total', WEBHOOK) > 0);
  assert.equal(received, 0);
  await startTestService(t, [...stream, '--log-stream-ca-file', certificate.certFile]);
  await until(() => received > 0);
});

test('a receiver that hangs delays no caller, and its lag is shown', async (t) => {
  const port = await startHttpReceiver(t, () => undefined);
  const file = join(temporaryDirectory(t), 'log.ndjson');
  const [flag = '', webhook = '', ...others] = webhookStream(t, `http://127.0.0.1:${port}/`);
  const service = await startTestService(t, [flag, `${webhook},file:${file}`, ...others]);
  await fill(service, 200);
  await until(() => readLines(file).length === 202);
  const read = async (name: string, labels: Record<string, string>) =>
    seriesValue(await scrape(service.address), `leasehold_stream_lag_${name}`, labels);
  // Lines are counted after they were written.
  await until(async () => (await read('entries', { stream: 'file' })) === 0);
  assert.equal(await read('entries', WEBHOOK), 202);
  await until(async () => (await read('seconds', WEBHOOK)) > 1);
  await service.stop();
});

const FILES = { secretFile: '/secret', tokenFile: null, caFile: null };

test('each kind of stream, with its default name and port', () => {
  const texts = [
    'file:/var/log/audit.ndjson',
    'webhook+https://hooks.example/audit?tenant=1',
    'machine=webhook+http://localhost:4318/audit',
  ];
  assert.deepEqual(
    parseStreams(texts, FILES).map(({ name, sink }) => [name, 'url' in sink ? sink.url.href : sink]),
    [
      ['file', { kind: 'file', path: '/var/log/audit.ndjson' }],
      ['webhook', 'https://hooks.example/audit?tenant=1'],
      ['machine', 'http://localhost:4318/audit'],
    ],
  );
});

test('a stream that is not valid is rejected, without an echo of it', () => {
  for (const [text, message] of [
    ['ftp://logs.example', /must be file:/],
    ['file:relative', /absolute path/],
    ['webhook+http://hooks.example/', /use https/],
    ['webhook+https://user:password@hooks.example/', /--log-stream-token-file/],
    ['webhook+https://', /must be file:/],
    ['file:/a,file:/b', /two streams named file/],
  ] as const) {
    assert.throws(
      () => parseStreams(text.split(','), FILES),
      (error) => error instanceof UsageError && message.test(error.message) && !error.message.includes('example'),
      text,
    );
  }
  assert.throws(() => parseStreams(['webhook+https://hooks.example/'], { ...FILES, secretFile: null }), UsageError);
});

const never = (): Promise<never> => new Promise(() => undefined);

test('a stream stops although its sink hangs', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const called = Promise.withResolvers<void>();
  const send = (): Promise<never> => {
    called.resolve();
    return never();
  };
  const log = vault.store.openStreamLog();
  t.after(() => log.close());
  const stream = new LogStream({
    name: 'hangs',
    openLog: () => log,
    openSink: () => ({ send, confirm: never, close: never }),
    newestSeq: () => 1,
    now: () => vault.clock.now(),
    onFailure: () => assert.fail('the sink has failed'),
  });
  await called.promise;
  await stream.stop();
});

test('checkpoints stop although their file hangs', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const file = { path: 'hangs', isOwn: false, append: never, close: never };
  const sinks = new CheckpointSinks([file], () => assert.fail('the file has failed'));
  sinks.publish(await vault.checkpoints.sign());
  await sinks.stop();
});

test('a checkpoint is written whenever it is published, also while the one before it is finished', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const first = await vault.checkpoints.sign();
  const second = { ...first };
  for (let ticks = 0; ticks < 8; ticks++) {
    const written: unknown[] = [];
    const finished = Promise.withResolvers<void>();
    const append = (checkpoint: unknown) => {
      written.push(checkpoint);
      return finished.promise;
    };
    const file = { path: 'kept', isOwn: false, append, close: async () => undefined };
    const sinks = new CheckpointSinks([file], () => assert.fail('the file has failed'));
    sinks.publish(first);
    finished.resolve();
    for (let tick = 0; tick < ticks; tick++) await null;
    sinks.publish(second);
    await sinks.stop();
    assert.deepEqual([written.length, written[1] === second], [2, true], `${ticks} turns later`);
  }
});
