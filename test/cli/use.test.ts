// `leasehold use`: the body on standard output, notices on standard error, and the exit code by who rejected what.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { standBetween } from '../client/fault-proxy.ts';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

const VALUE = 'sk-test-0123456789abcdefghijklmnop';
const BINARY = Buffer.from([0, 255, 254, 10, 13, 128]);
const LIMIT = 2 * 1024 ** 2;
let body = Buffer.alloc(0);

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  body = await buffer(request);
  const { pathname } = new URL(request.url ?? '', 'https://upstream.test');
  if (pathname === '/v1/models') response.setHeader('x-made', 'a').end('{"models":[]}\n');
  else if (pathname === '/v1/echo') response.end(body);
  else if (pathname === '/v1/key') response.end(`seen ${request.headers.authorization}`);
  else if (pathname === '/v1/moved') response.writeHead(301, { location: '/v1/models' }).end();
  else if (pathname === '/v1/large') response.end(Buffer.alloc(LIMIT + 1, 'x'));
  else if (pathname === '/v1/hostile') response.end('title \u001b]0;owned\u0007\tend');
  else response.writeHead(404).end('{"error":"unknown"}');
}

const service = await startTestService({ after });
const upstream = await startUpstream({ after }, (request, response) => void answer(request, response));
const origin = `https://127.0.0.1:${upstream.port}`;
const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };
const home = newHome({ after }, environment);
const { leasehold } = home;
writeFileSync(join(home.path, 'ca.pem'), upstream.caPem ?? '');
const inTests = ['--allow-network', '127.0.0.0/8', '--target-ca-file', 'ca.pem'];
await leasehold(['put', 'openai/key', '-'], { input: VALUE });
const set = await leasehold([
  'target',
  'put',
  'openai/key',
  '--origin',
  origin,
  '--path',
  '/v1/*',
  '--bearer',
  ...inTests,
]);
assert.equal(set.code, 0, set.stderr);
await leasehold(['agent', 'add', 'bot']);
await leasehold(['policy', 'put', 'uses', '--principal', 'agent:bot', '--resource', 'openai/*', '--action', 'use']);

const use = (words: readonly string[], input: string | Uint8Array = '') =>
  leasehold(['use', 'openai/key', ...words], { input });

test('the body goes to standard output, byte for byte, and nothing else', async () => {
  const { code, stdout, stderr } = await use(['GET', `${origin}/v1/models`, '--agent', 'bot']);
  assert.deepEqual([code, stdout, stderr], [0, '{"models":[]}\n', '']);
  assert.equal(upstream.requests.at(-1)?.headers.authorization, `Bearer ${VALUE}`);
});

test('a URL that is only a path is on the first target that it matches, also without the action list', async () => {
  const { code, stdout } = await use(['get', '/v1/models?limit=2', '--agent', 'bot']);
  assert.deepEqual([code, stdout], [0, '{"models":[]}\n']);
  assert.deepEqual([upstream.requests.at(-1)?.method, upstream.requests.at(-1)?.url], ['GET', '/v1/models?limit=2']);
  const denied = await use(['GET', '/v2/models', '--agent', 'bot']);
  assert.deepEqual([denied.code, denied.stdout], [3, '']);
  assert.match(denied.stderr, /no target of the credential has this path[\s\S]*ACCESS_DENIED/);
  const explain = /leasehold (policy explain bot use openai\/key) --request '(GET \/v2\/models)'/.exec(denied.stderr);
  const explained = await leasehold([...(explain?.[1] ?? '').split(' '), '--request', explain?.[2] ?? '']);
  assert.match(
    explained.stdout,
    /DENIED[\s\S]*target put openai\/key --add --origin https:.* --path \/v2\/models --method GET/,
  );
  const evil = await use(['GET', '//evil.example/v1/models']);
  assert.deepEqual([evil.code, /^leasehold: URL: must not contain \/\/\.\n/.test(evil.stderr)], [1, true]);
});

test('a path alone is rejected where the target has many hosts', async () => {
  await leasehold(['put', 'many/hosts', '-'], { input: VALUE });
  await leasehold(['target', 'put', 'many/hosts', '--origin', 'https://*.example.com', '--bearer']);
  const { code, stderr } = await leasehold(['use', 'many/hosts', 'GET', '/v1']);
  assert.equal(code, 3);
  assert.match(stderr, /a target with a wildcard host needs the whole URL/);
});

test('headers are sent, and a body from an argument, a file or standard input', async () => {
  const post = (...words: string[]) => ['POST', '/v1/echo', ...words];
  const json = await use(post('-d', '{"a":1}', '-H', 'X-One: 1', '--header', 'x-one:2', '--purpose', 'a check'));
  assert.deepEqual([json.code, json.stdout], [0, '{"a":1}']);
  const { headers } = upstream.requests.at(-1) ?? assert.fail();
  assert.deepEqual([headers['x-one'], headers['content-type']], ['1, 2', 'application/json']);
  const log = await leasehold(['audit', 'list', '--event', 'credential.use', '--field', 'reason']);
  assert.equal(log.stdout.split('\n')[0], 'purpose: "a check"');
  writeFileSync(join(home.path, 'body.bin'), BINARY);
  const file = await use(post('-d', '@body.bin', '-H', 'Content-Type: image/x-own'));
  assert.equal(file.code, 0);
  assert.deepEqual(body, BINARY);
  assert.equal(upstream.requests.at(-1)?.headers['content-type'], 'image/x-own');
  assert.equal((await use(post('-d', '-'), 'line\n')).stdout, 'line\n');
  assert.equal(upstream.requests.at(-1)?.headers['content-type'], undefined, 'text has no type');
});

test('-i prints the status and the headers first', async () => {
  const { stdout } = await use(['GET', '/v1/models', '-i']);
  assert.match(stdout, /^HTTP 200 OK\n(?:[a-z-]+: .*\n)*x-made: a\n(?:[a-z-]+: .*\n)*\n\{"models":\[\]\}\n$/);
});

test('another status of the upstream is printed, and exits with 4', async () => {
  const missing = await use(['GET', '/v1/missing']);
  assert.deepEqual(missing, {
    code: 4,
    signal: null,
    stdout: '{"error":"unknown"}',
    stderr: 'The upstream responded with 404 Not Found.\n',
  });
  const moved = await use(['GET', '/v1/moved']);
  assert.equal(moved.code, 4);
  assert.match(moved.stderr, /301 Moved Permanently\. Redirects are not followed; -i shows the location\.\n$/);
});

test('a rejection by Leasehold exits with 3, prints nothing on standard output, and says what to do', async () => {
  const before = upstream.requests.length;
  const hints: readonly (readonly [words: string[], hint: RegExp])[] = [
    [
      ['openai/key', 'GET', `${origin}/v2/x`],
      /no target of .* path[\s\S]*\n {2}.*leasehold policy explain bot use openai\/key/,
    ],
    [['prod/other', 'GET', `${origin}/v1/x`], /ACCESS_DENIED[\s\S]*leasehold policy explain bot use prod\/other/],
    [
      ['openai/none', 'GET', `${origin}/v1/x`],
      /has no targets[\s\S]*leasehold target put openai\/none --service NAME\n$/,
    ],
    [['openai/gone', 'GET', `${origin}/v1/x`], /NOT_FOUND/],
    [['openai/inside', 'GET', `${origin}/v1/x`], /UPSTREAM_FAILED[\s\S]*--allow-network of leasehold target put\.\n$/],
    [
      ['openai/untrusted', 'GET', `${origin}/v1/x`],
      /UPSTREAM_FAILED[\s\S]*--target-ca-file of leasehold target put\.\n$/,
    ],
  ];
  for (const path of ['openai/none', 'openai/inside', 'openai/untrusted'])
    await leasehold(['put', path, '-'], { input: VALUE });
  await leasehold(['target', 'put', 'openai/inside', '--origin', origin, '--bearer']);
  await leasehold(['target', 'put', 'openai/untrusted', '--origin', origin, '--bearer', ...inTests.slice(0, 2)]);
  for (const [words, hint] of hints) {
    const { code, stdout, stderr } = await leasehold(['use', ...words, '--agent', 'bot']);
    assert.deepEqual([code, stdout], [3, ''], words.join(' '));
    assert.match(stderr, hint);
    const [, own = ''] = stderr.split('\n');
    assert.ok(own.length <= 80 || own.includes('policy explain'), own);
  }
  const asAdmin = await use(['GET', `${origin}/v2/x`]);
  assert.match(asAdmin.stderr, /\n {2}To see where it may be used: leasehold target show openai\/key\n$/);
  assert.equal(upstream.requests.length, before);
});

test('without a server the exit code is 2, and a wrong argument is 1 before any request', async () => {
  const nowhere = { LEASEHOLD_ADDR: 'http://127.0.0.1:1' };
  const away = await leasehold(['use', 'openai/key', 'POST', `${origin}/v1/x`], { environment: nowhere });
  assert.deepEqual([away.code, /^leasehold: no response from /.test(away.stderr)], [2, true]);
  const before = upstream.requests.length;
  for (const [words, message] of [
    [['GET', 'ftp://x/'], /URL: must be an absolute URL/],
    [['CONNECT', '/v1/x'], /METHOD: must be an HTTP method/],
    [['GET', '/v1/x', '-H', 'secret-without-colon'], /--header: must be 'NAME: VALUE'/],
    [['GET', '/v1/x', '-d', '@nowhere'], /--data: cannot be read \(ENOENT\)/],
    [['GET'], /URL is missing/],
  ] as const) {
    const { code, stderr } = await use(words);
    assert.equal(code, 1, words.join(' '));
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /secret-without/);
  }
  assert.equal(upstream.requests.length, before);
});

test('--timeout limits a use', async (t) => {
  const between = await standBetween(t, service);
  between.next('silence', ({ path }) => path === '/api/v1/use');
  const words = ['use', 'openai/key', 'POST', `${origin}/v1/echo`, '--timeout', '1'];
  const { code, stderr } = await leasehold(words, { environment: { LEASEHOLD_ADDR: between.address } });
  assert.deepEqual([code, /^leasehold: no response from \S+ within 1 s\.\n/.test(stderr)], [2, true]);
});

test('a value in the response is masked, and a notice says so', async () => {
  const { code, stdout, stderr } = await use(['GET', '/v1/key']);
  assert.deepEqual([code, stdout.includes(VALUE), /^seen Bearer \[/.test(stdout)], [0, false, true]);
  assert.equal(stderr, 'The value was redacted in the response, in 1 place.\n');
});

test('a response that was cut is printed as far as it came, and exits with 2', async () => {
  const { code, stdout, stderr } = await use(['GET', '/v1/large']);
  assert.deepEqual([code, stdout.length], [2, LIMIT]);
  assert.equal(stderr, 'WARNING  the response was truncated at 2 MiB, the limit of one call.\n');
});

test('on a terminal control characters are escaped, and bytes that are not text are not printed', async () => {
  const onTerminal = (words: readonly string[]) => home.onTerminal(['use', 'openai/key', ...words]);
  const hostile = onTerminal(['GET', '/v1/hostile']);
  assert.equal((await hostile.ended).exitCode, 0);
  assert.match(hostile.screen(), /title \\u001b\]0;owned\\u0007\s+end/);
  const binary = onTerminal(['POST', '/v1/echo', '-d', '@body.bin']);
  assert.equal((await binary.ended).exitCode, 0);
  assert.match(binary.screen(), /The body is 6 bytes, and not text\. To see it, redirect it\./);
});
