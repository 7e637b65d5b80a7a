// The OTLP stream against the published JSON mapping: field names, types, and what a receiver may respond.
// SOURCE: OTLP 1.5, "JSON Protobuf Encoding"; opentelemetry/proto/collector/logs/v1, logs/v1 and common/v1.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type HttpCall, type LogEntry, startHttpReceiver, until } from '../kit/log-receivers.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';

type Check = (value: unknown, at: string) => void;

const matching =
  (pattern: RegExp): Check =>
  (value, at) =>
    assert.ok(typeof value === 'string' && pattern.test(value), `${at}: ${JSON.stringify(value)}`);
/** `fixed64` and `int64` are decimal strings. */
const fixed64 = matching(/^(?:0|[1-9]\d{0,19})$/);
const int64 = matching(/^-?(?:0|[1-9]\d{0,18})$/);
const string: Check = (value, at) => assert.equal(typeof value, 'string', at);
const boolean: Check = (value, at) => assert.equal(typeof value, 'boolean', at);
const double: Check = (value, at) => assert.equal(typeof value, 'number', at);
/** Enumerations are numbers. */
const severity: Check = (value, at) =>
  assert.ok(Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 24, at);
const uint32: Check = (value, at) => assert.ok(Number.isInteger(value) && Number(value) >= 0, at);
const list =
  (check: Check): Check =>
  (value, at) => {
    assert.ok(Array.isArray(value), at);
    for (const [index, each] of value.entries()) check(each, `${at}[${index}]`);
  };
/** Every field is known, and `isOneof` allows exactly one. */
const message =
  (fields: () => Readonly<Record<string, Check>>, isOneof = false): Check =>
  (value, at) => {
    assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), at);
    const known = fields();
    for (const [name, inner] of Object.entries(value))
      (known[name] ?? assert.fail(`${at}.${name}`))(inner, `${at}.${name}`);
    if (isOneof) assert.equal(Object.keys(value).length, 1, at);
  };
const anyValue: Check = message(
  () => ({
    stringValue: string,
    boolValue: boolean,
    intValue: int64,
    doubleValue: double,
    arrayValue: message(() => ({ values: list(anyValue) })),
    kvlistValue: message(() => ({ values: list(keyValue) })),
    bytesValue: string,
  }),
  true,
);
const keyValue = message(() => ({ key: string, value: anyValue }));
const logRecord = message(() => ({
  timeUnixNano: fixed64,
  observedTimeUnixNano: fixed64,
  severityNumber: severity,
  severityText: string,
  body: anyValue,
  attributes: list(keyValue),
  droppedAttributesCount: uint32,
  flags: uint32,
  traceId: matching(/^[0-9a-f]{32}$/i),
  spanId: matching(/^[0-9a-f]{16}$/i),
  eventName: string,
}));
const scope = message(() => ({ name: string, version: string, attributes: list(keyValue) }));
const resource = message(() => ({ attributes: list(keyValue), droppedAttributesCount: uint32 }));
const exportRequest = message(() => ({
  resourceLogs: list(
    message(() => ({
      resource,
      scopeLogs: list(message(() => ({ scope, logRecords: list(logRecord), schemaUrl: string }))),
      schemaUrl: string,
    })),
  ),
}));

interface KeyValue {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}
interface LogRecord {
  readonly timeUnixNano: string;
  readonly severityText: string;
  readonly eventName: string;
  readonly body: { readonly stringValue: string };
  readonly attributes: readonly KeyValue[];
}
const asMap = (attributes: readonly KeyValue[]) =>
  new Map(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));

test('log records follow the JSON mapping, and have the entry as body and attributes', async (t) => {
  const records: LogRecord[] = [];
  const resources = new Set<string | undefined>();
  let calls = 0;
  const port = await startHttpReceiver(t, ({ headers, url, body }: HttpCall, response) => {
    assert.equal(url, '/v1/logs');
    assert.equal(headers['content-type'], 'application/json');
    const request = JSON.parse(body);
    exportRequest(request, 'request');
    calls += 1;
    if (calls === 1) return void response.writeHead(503, { 'retry-after': '1' }).end();
    if (calls === 2) return void response.end('{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"no"}}');
    for (const each of request.resourceLogs) {
      resources.add(asMap(each.resource.attributes).get('service.name'));
      for (const { logRecords } of each.scopeLogs) records.push(...logRecords);
    }
    response.end('{"partialSuccess":{}}');
  });
  const service = await startTestService(t, ['--log-stream', `otlp+http://127.0.0.1:${port}/v1/logs`]);
  await service.admin.post('/api/v1/credentials', { path: 'a/b', value: 'a value' });
  await service.admin.get('/api/v1/credentials/a/b');
  await service.admin.get('/api/v1/credentials/none');
  await until(() => records.length >= 4);
  const text = (await service.admin.get('/api/v1/audit/export')).text;
  const entries: LogEntry[] = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    records.map(({ body }) => JSON.parse(body.stringValue)),
    entries,
  );
  for (const [index, record] of records.entries()) {
    const entry = entries[index] ?? assert.fail();
    assert.equal(BigInt(record.timeUnixNano), BigInt(Date.parse(entry.timestamp)) * 1_000_000n);
    assert.equal(record.eventName, entry.event_type);
    const attributes = asMap(record.attributes);
    assert.equal(attributes.get('leasehold.seq'), String(entry.seq));
    assert.equal(attributes.get('leasehold.hmac'), entry.hmac);
    const present = Object.entries(entry).filter(([, value]) => value !== null);
    assert.equal(attributes.size, present.length);
  }
  assert.deepEqual(
    records.map(({ severityText }) => severityText),
    ['INFO', 'INFO', 'INFO', 'WARN'],
  );
  assert.deepEqual([...resources], ['leasehold']);
  const families = await scrape(service.address);
  assert.equal(seriesValue(families, 'leasehold_stream_failures_total', { stream: 'otlp' }), 2);
});
