// The modules that the server loads at startup, which are most of its memory at rest.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

const SERVER = join(import.meta.dirname, '../../src/bin/server.ts');
/** Prints the names of all modules on standard error at the exit. */
const REPORT = `
import { registerHooks } from 'node:module';
const names = [];
registerHooks({ load: (url, context, next) => { names.push(url); return next(url, context); } });
process.on('exit', () => {
  names.push(...process.moduleLoadList);
  process.stdout.write('\\n' + JSON.stringify(names));
});`;

// `--help` exits after everything is loaded.
const preload = `data:text/javascript,${encodeURIComponent(REPORT)}`;
const output = execFileSync(process.execPath, ['--import', preload, SERVER, '--help'], { encoding: 'utf8' });
const names: string[] = JSON.parse(output.slice(output.lastIndexOf('\n') + 1));

test('the start loads the server', () => {
  assert.ok(names.some((name) => name.endsWith('src/server/composition.ts')));
  assert.ok(names.some((name) => name.includes('/node_modules/fastify/')));
});

for (const [name, part] of [
  ['the driver of PostgreSQL', '/node_modules/postgres/'],
  ['the client of metrics', '/node_modules/prom-client/'],
  ["AWS's SDK", '/node_modules/@aws-sdk/'],
  ['the encryption of backups', '/node_modules/age-encryption/'],
  ['the log streams', '/src/server/log-streams.ts'],
  ['the webhook for approvals', '/src/server/approval-webhook.ts'],
  ["Node's client and streams of browsers", 'NativeModule internal/deps/undici/'],
] as const) {
  test(`the start does not load ${name}`, () => {
    assert.deepEqual(
      names.filter((each) => each.includes(part)),
      [],
    );
  });
}
