// The flag --log-stream: what it accepts, and what it rejects before anything is created.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UsageError } from '../../src/platform/errors.ts';
import { parseStreams } from '../../src/server/streams/stream-options.ts';

const FILES = { secretFile: '/secret', tokenFile: null, caFile: null };

test('each kind of stream, with its default name and port', () => {
  const texts = [
    'file:/var/log/audit.ndjson',
    'syslog+tls://logs.example',
    'local=syslog+tcp://[::1]:5140',
    'webhook+https://hooks.example/audit?tenant=1',
    'otlp+https://otel.example:4318/v1/logs',
    'machine=otlp+http://localhost:4318/v1/logs',
  ];
  assert.deepEqual(
    parseStreams(texts, FILES).map(({ name, sink }) => [name, 'url' in sink ? sink.url.href : sink]),
    [
      ['file', { kind: 'file', path: '/var/log/audit.ndjson' }],
      ['syslog', { kind: 'syslog', host: 'logs.example', port: 6514, isTls: true }],
      ['local', { kind: 'syslog', host: '::1', port: 5140, isTls: false }],
      ['webhook', 'https://hooks.example/audit?tenant=1'],
      ['otlp', 'https://otel.example:4318/v1/logs'],
      ['machine', 'http://localhost:4318/v1/logs'],
    ],
  );
});

for (const [text, message] of [
  ['ftp://logs.example', /must be file:/],
  ['file:relative', /absolute path/],
  ['syslog+tcp://', /host and a port only/],
  ['syslog+tcp://logs.example/path', /host and a port only/],
  ['webhook+http://hooks.example/', /use https/],
  ['otlp+https://user:password@otel.example/', /--log-stream-token-file/],
  ['otlp+https://', /must be file:/],
  ['file:/a,file:/b', /two streams named file/],
] as const) {
  test(`${text} is rejected, without an echo of it`, () => {
    assert.throws(
      () => parseStreams(text.split(','), FILES),
      (error) => error instanceof UsageError && message.test(error.message) && !error.message.includes('example'),
    );
  });
}

test('a webhook without a secret is rejected', () => {
  assert.throws(() => parseStreams(['webhook+https://hooks.example/'], { ...FILES, secretFile: null }), UsageError);
});
