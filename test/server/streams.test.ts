// Log streams to real receivers: every entry as in the export, in order, at least once, also if receivers fail.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { makeCertificate } from '../kit/certificate.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import {
  assertComplete,
  type HttpCall,
  type LogEntry,
  startHttpReceiver,
  startSyslogReceiver,
  until,
} from '../kit/log-receivers.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';
const SECRET_BYTES = Buffer.alloc(32, 7);
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

function secretFile(t: TestContext, text: string): string {
  const file = join(temporaryDirectory(t), 'secret');
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

const MESSAGE = /^<(\d{1,3})>1 (\S+) ([!-~]{1,255}) (leasehold) (\d+) ([!-~]{1,32}) - (\{[ -~]*\})$/;

for (const isTls of [false, true]) {
  test(`syslog over ${isTls ? 'TLS' : 'TCP'}: messages of RFC 5424 with octet counts, sent again after a cut`, async (t) => {
    const certificate = isTls ? makeCertificate(t) : null;
    const receiver = await startSyslogReceiver(t, certificate);
    const flags = [
      ...['--log-stream', `syslog+${isTls ? 'tls' : 'tcp'}://localhost:${receiver.port}`],
      ...(certificate === null ? [] : ['--log-stream-ca-file', certificate.certFile]),
    ];
    const service = await startTestService(t, flags);
    await fill(service, 20);
    await until(() => receiver.messages.length >= 22);
    receiver.cut();
    await fill(service, 20);
    await service.admin.get(`${CREDENTIALS}/none`);
    const entries = await exported(service);
    const parsed = () =>
      receiver.messages.map((message) => {
        const [, priority, timestamp, , , , id, json = ''] = MESSAGE.exec(message) ?? assert.fail(message);
        return { priority: Number(priority), timestamp, id, entry: JSON.parse(json) as LogEntry };
      });
    await until(() => parsed().at(-1)?.entry.seq === entries.length);
    assertComplete(
      parsed().map(({ entry }) => entry.seq),
      entries.length,
    );
    for (const { priority, timestamp, id, entry } of parsed()) {
      assert.deepEqual(entry, entries[entry.seq - 1]);
      assert.deepEqual([id, timestamp], [entry.event_type, entry.timestamp]);
      assert.equal(priority, 13 * 8 + ({ allowed: 6, not_found: 5, denied: 4 }[entry.result] ?? 3));
    }
  });
}

test('what a syslog receiver took and did not read before its connection broke is sent again', async (t) => {
  const receiver = await startSyslogReceiver(t);
  receiver.losing = 2;
  const service = await startTestService(t, ['--log-stream', `syslog+tcp://127.0.0.1:${receiver.port}`]);
  await fill(service, 20);
  const total = (await exported(service)).length;
  const seqs = () => receiver.messages.map((message) => JSON.parse(message.slice(message.indexOf('{'))).seq);
  await until(() => seqs().at(-1) === total);
  assertComplete(seqs(), total);
  assert.equal(receiver.losing, 0);
});

test('an untrusted certificate of a syslog receiver gets nothing', async (t) => {
  const receiver = await startSyslogReceiver(t, makeCertificate(t));
  const { address } = await startTestService(t, ['--log-stream', `syslog+tls://localhost:${receiver.port}`]);
  await until(
    async () => seriesValue(await scrape(address), 'leasehold_stream_failures_total', { stream: 'syslog' }) > 0,
  );
  assert.deepEqual(receiver.messages, []);
});

test('a webhook is signed as Standard Webhooks says, and repeated until it succeeds', async (t) => {
  const entries: LogEntry[] = [];
  let [calls, failures] = [0, 0];
  const verify = ({ headers, body }: HttpCall): void => {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const expected = createHmac('sha256', SECRET_BYTES).update(signed).digest('base64');
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
    ...['--log-stream', `webhook+http://127.0.0.1:${port}/hook`],
    ...['--log-stream-secret-file', secretFile(t, `whsec_${SECRET_BYTES.toString('base64')}\n`)],
    ...['--log-stream-token-file', secretFile(t, 'a-token\n')],
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

test('an idle connection to a receiver is closed by the service', async (t) => {
  let endings = 0;
  const port = await startHttpReceiver(t, (_call, response) => {
    response.socket?.once('end', () => endings++);
    response.end('{}');
  });
  await startTestService(t, [
    ...['--log-stream', `webhook+http://127.0.0.1:${port}/hook`],
    ...['--log-stream-secret-file', secretFile(t, `whsec_${SECRET_BYTES.toString('base64')}\n`)],
  ]);
  await until(() => endings > 0);
});

test('a receiver that hangs delays no caller, and its lag is shown', async (t) => {
  const port = await startHttpReceiver(t, () => undefined);
  const syslog = await startSyslogReceiver(t);
  syslog.hangs = true;
  const file = join(temporaryDirectory(t), 'log.ndjson');
  const streams = [`webhook+http://127.0.0.1:${port}/`, `syslog+tcp://127.0.0.1:${syslog.port}`, `file:${file}`];
  const secret = secretFile(t, SECRET_BYTES.toString('base64'));
  const service = await startTestService(t, ['--log-stream', streams.join(), '--log-stream-secret-file', secret]);
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
