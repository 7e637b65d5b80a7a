// Which entries count as received by a syslog receiver: those of a connection that it has read to its end.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SyslogSink } from '../../src/server/streams/syslog-sink.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { assertComplete, startSyslogReceiver, until } from '../kit/log-receivers.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';
import { openVault, put, readLog } from '../vault/fixture.ts';

const seqOf = (message: string): number => JSON.parse(message.slice(message.indexOf('{'))).seq;
const NEVER = new AbortController().signal;

test('what a syslog receiver took and never read is sent again, however long its connection was open', async (t) => {
  const receiver = await startSyslogReceiver(t);
  receiver.hangs = true;
  const service = await startTestService(t, ['--log-stream', `syslog+tcp://127.0.0.1:${receiver.port}`]);
  for (let number = 0; number < 20; number++) await service.admin.get('/api/v1/credentials/none');
  await until(
    async () => seriesValue(await scrape(service.address), 'leasehold_stream_lag_entries', { stream: 'syslog' }) === 0,
  );
  // Longer than the interval in which positions are saved.
  await sleep(2500);
  receiver.hangs = false;
  receiver.cut();
  const { total } = (await service.admin.get('/api/v1/audit?limit=1')).body.meta;
  await until(() => receiver.messages.length > 0 && seqOf(receiver.messages.at(-1) ?? '') === total);
  assertComplete(receiver.messages.map(seqOf), total);
});

for (const isTls of [false, true]) {
  test(`a connection over ${isTls ? 'TLS' : 'TCP'} ends after 10,000 entries, and confirms them`, async (t) => {
    const certificate = isTls ? makeCertificate(t) : null;
    const receiver = await startSyslogReceiver(t, certificate);
    const vault = await openVault(t);
    await put(vault, 'a');
    const [entry] = await readLog(vault.real);
    assert.ok(entry);
    const tls = certificate === null ? null : { ca: readFileSync(certificate.certFile, 'utf8') };
    const sink = new SyslogSink({ host: 'localhost', port: receiver.port, tls });
    const pageFrom = (first: number, count: number) =>
      Array.from({ length: count }, (_, index) => ({ ...entry, seq: first + index }));
    await sink.send(pageFrom(1, 9_999), NEVER);
    assert.equal(await sink.confirm(9_999, NEVER), 0);
    await sink.send(pageFrom(10_000, 1), NEVER);
    assert.equal(await sink.confirm(10_000, NEVER), 10_000);
    assert.equal(receiver.messages.length, 10_000);
    await sink.send(pageFrom(10_001, 1), NEVER);
    await sink.close();
    assert.equal(await sink.confirm(10_001, NEVER), 10_001);
    assert.equal(seqOf(receiver.messages.at(-1) ?? ''), 10_001);
  });
}

test('an end that the receiver sends first confirms nothing', async (t) => {
  const receiver = await startSyslogReceiver(t);
  const vault = await openVault(t);
  await put(vault, 'a');
  const sink = new SyslogSink({ host: '127.0.0.1', port: receiver.port, tls: null });
  await sink.send(await readLog(vault.real), NEVER);
  await until(() => receiver.messages.length === 1);
  receiver.cut();
  await sink.close();
  await assert.rejects(sink.confirm(1, NEVER), /closed the connection/);
});
