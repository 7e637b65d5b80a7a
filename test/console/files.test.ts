// The console's files over plain HTTP: policy, caching, compression, and a closed set of paths.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, test } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { type ConsoleFile, chooseEncoding, installedConsole, readConsole } from '../../src/http/console.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const files = installedConsole() ?? assert.fail('the console is not built');
const MAX_FIRST_LOAD_BYTES = 150 * 1024;

interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** The raw target, which `fetch` would resolve. */
function get(target: string, headers: Record<string, string> = {}): Promise<Got> {
  const { hostname, port } = new URL(service.address);
  return new Promise((resolve, reject) => {
    const call = request({ hostname, port, path: target, headers }, async (response) => {
      const body = Buffer.concat(await response.toArray());
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
    });
    call.on('error', reject).end();
  });
}

test('every file has the strict policy, and no page is cached', async () => {
  const { status, headers, body } = await get('/console/');
  assert.equal(status, 200);
  assert.equal(headers['content-type'], 'text/html; charset=utf-8');
  assert.equal(
    headers['content-security-policy'],
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  );
  assert.equal(headers['x-content-type-options'], 'nosniff');
  assert.equal(headers['referrer-policy'], 'no-referrer');
  assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
  assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
  assert.equal(headers['cache-control'], 'no-store');
  assert.doesNotMatch(body.toString(), /<script>|<style|style=|javascript:|https?:/);
  for (const name of files.keys()) {
    const file = await get(`/console/${name}`);
    assert.equal(file.status, 200, name);
    assert.match(String(file.headers['content-security-policy']), /^default-src 'none'/, name);
  }
});

test('a file with a hash in its name is cached for a year, and validated by its tag', async () => {
  const [name = ''] = [...files.keys()].filter((each) => each.endsWith('.js'));
  const { headers } = await get(`/console/${name}`);
  assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
  const repeated = await get(`/console/${name}`, { 'if-none-match': String(headers['etag']) });
  assert.deepEqual([repeated.status, repeated.body.length], [304, 0]);
});

test('files are sent as they were compressed by the build, in the form that the client accepts', async () => {
  const [name = '', file] = [...files].find(([each]) => each.endsWith('.js')) ?? [];
  const { headers, body } = await get(`/console/${name}`, { 'accept-encoding': 'gzip, deflate, br' });
  assert.equal(headers['content-encoding'], 'br');
  assert.equal(headers['vary'], 'accept-encoding');
  assert.deepEqual(brotliDecompressSync(body), Buffer.from(file?.bytes.identity ?? []));
  assert.equal((await get(`/console/${name}`)).headers['content-encoding'], undefined);
});

test('an encoding is chosen only if it is accepted', () => {
  const identity = new Uint8Array(3);
  const file: ConsoleFile = {
    type: '',
    etag: null,
    bytes: { identity, br: identity, gzip: identity },
  };
  const cases: readonly [string | undefined, string][] = [
    [undefined, 'identity'],
    ['', 'identity'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['br;q=0.000', 'identity'],
    ['GZIP;q=0.5, Br', 'br'],
    ['brotli', 'identity'],
  ];
  for (const [accepted, expected] of cases) assert.equal(chooseEncoding(file, accepted), expected, String(accepted));
});

test('paths of pages get the page, and anything else below assets is not found', async () => {
  for (const target of ['/console/log', '/console/log?entry=5', '/console/credentials/prod%2Fdb', '/console/a/b/c']) {
    const { status, headers } = await get(target);
    assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8'], target);
  }
  for (const target of ['/console/assets/', '/console/assets/none.js', '/console/assets/../../package.json']) {
    assert.equal((await get(target)).status, 404, target);
  }
  for (const target of ['/console/../package.json', '/console/%2e%2e/package.json', '/console/..%2fpackage.json']) {
    const { body } = await get(target);
    assert.doesNotMatch(body.toString(), /"dependencies"/, target);
  }
  assert.equal((await get('/%63onsole/')).status, 404);
  assert.equal((await service.admin.post('/console/', {})).status, 404);
});

test('browsers are redirected from the top, and programs get the error that names the HTTP API', async () => {
  for (const target of ['/console', '/']) {
    const { status, headers } = await get(target, { accept: 'text/html,*/*' });
    assert.deepEqual([status, headers['location']], [302, '/console/'], target);
  }
  assert.equal((await get('/')).status, 404);
});

test('the first load, with sign-in and the first page, is at most 150 KiB compressed', () => {
  const size = (name: string): number => files.get(name)?.bytes.br?.length ?? assert.fail(`${name} is not compressed`);
  const first = [...files.keys()].filter((name) => /\/(?:sign-in-page|now-page)-[^/]*\.js$/.test(name));
  assert.equal(first.length, 2);
  const loaded = new Set<string>(['index.html', ...first]);
  for (const name of loaded) {
    const text = Buffer.from(files.get(name)?.bytes.identity ?? []).toString();
    const named = name.endsWith('.html') ? /(?:src|href)="\/console\/([^"]+)"/g : /(?:from|import)\s*"\.\/([^"]+)"/g;
    for (const [, found = ''] of text.matchAll(named))
      loaded.add(found.startsWith('assets/') ? found : `assets/${found}`);
  }
  const bytes = [...loaded].reduce((total, name) => total + size(name), 0);
  assert.ok(loaded.size > 4 && bytes > 20_000, 'the files of the first load are found');
  assert.ok(bytes <= MAX_FIRST_LOAD_BYTES, `${bytes} bytes`);
});

test('an installation whose console is not built says so', async (t) => {
  const { default: fastify } = await import('fastify');
  const { addConsole } = await import('../../src/http/console.ts');
  const { toApiError, toErrorResponse } = await import('../../src/http/errors.ts');
  const { RequestMeasures } = await import('../../src/http/request-measures.ts');
  const app = fastify();
  t.after(() => app.close());
  app.setErrorHandler((error, _request, reply) => {
    const { status, body } = toErrorResponse(toApiError(error) ?? assert.fail());
    return reply.code(status).send(body);
  });
  addConsole(app, { consoleFiles: () => null, measures: new RequestMeasures() });
  const { statusCode, body } = await app.inject('/console/');
  assert.equal(statusCode, 404);
  assert.match(body, /The console is not built/);
  assert.equal(readConsole(temporaryDirectory(t)).size, 0);
});
