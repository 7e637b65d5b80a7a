// The flag --log-stream: what it accepts, and what it rejects before anything is created.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UsageError } from '../../src/platform/errors.ts';
import { parseStreams } from '../../src/server/receiver-options.ts';

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

for (const [text, message] of [
  ['ftp://logs.example', /must be file:/],
  ['file:relative', /absolute path/],
  ['webhook+http://hooks.example/', /use https/],
  ['webhook+https://user:password@hooks.example/', /--log-stream-token-file/],
  ['webhook+https://', /must be file:/],
  ['syslog+tcp://logs.example', /must be file:/],
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
