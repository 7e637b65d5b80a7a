// Which hosts a program's proxy variables exempt, and in what form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proxyExceptions } from '../../src/run/proxy-exceptions.ts';

const exceptionsOf = (url: string, environment: Readonly<Record<string, string>> = {}) =>
  proxyExceptions(environment, [`${url}/use/a/-`, `${url}/use/b/-`]);

test('both spellings exempt a host that is called over plain HTTP or is this machine', () => {
  for (const [url, host] of [
    ['http://127.0.0.1:7700', '127.0.0.1'],
    ['https://localhost:7700', 'localhost'],
    ['http://[::1]:7700', '::1'],
    ['http://vault.internal', 'vault.internal'],
  ] as const)
    assert.deepEqual(exceptionsOf(url), { NO_PROXY: host, no_proxy: host });
});

test('https to another machine may use the proxy', () => {
  assert.deepEqual(exceptionsOf('https://vault.example.org', { NO_PROXY: 'a' }), {});
});

test('existing exceptions are kept, and one that is set alone counts for both spellings', () => {
  const url = 'http://127.0.0.1:7700';
  const both = { NO_PROXY: 'a, .b', no_proxy: 'c' };
  assert.deepEqual(exceptionsOf(url, both), { NO_PROXY: 'a,.b,127.0.0.1', no_proxy: 'c,127.0.0.1' });
  assert.deepEqual(exceptionsOf(url, { no_proxy: 'a' }), { NO_PROXY: 'a,127.0.0.1', no_proxy: 'a,127.0.0.1' });
  assert.deepEqual(exceptionsOf(url, { NO_PROXY: '*' }), { NO_PROXY: '*', no_proxy: '*' });
  assert.equal(exceptionsOf(url, { NO_PROXY: '127.0.0.1' })['NO_PROXY'], '127.0.0.1');
});
