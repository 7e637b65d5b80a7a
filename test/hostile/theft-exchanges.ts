// An agent that may use a credential cannot get its value through its requests or through the upstream's responses.
// test/broker covers encodings and codings; use-ssrf.test.ts covers requests to other hosts.

import assert from 'node:assert/strict';
import { attempt, PATHS, type Respond, type TheftFixture, tokenOf, VALUE } from './theft-fixture.ts';

const bearer = { kind: 'bearer' };

function responses(name: string, ...hows: readonly Respond[]): void {
  attempt(name, async ({ echo }) => {
    for (const how of hows) await echo({}, how);
  });
}

const raw = (text: (value: string) => string): Respond => {
  return (_, request) => request.socket.end(text(tokenOf(request)), 'latin1');
};
const END = 'Connection: close\r\nContent-Length: 2\r\n\r\nok';

responses(
  'a header, or the name of a header',
  (response, request) => {
    response.writeHead(200, { 'x-echo': tokenOf(request), 'set-cookie': [`a=${tokenOf(request)}`] }).end();
  },
  raw((value) => `HTTP/1.1 200 OK\r\nX-${Buffer.from(value).toString('hex')}: 1\r\n${END}`),
);
responses(
  'a header that continues on the next line',
  raw((value) => `HTTP/1.1 200 OK\r\nX: a\r\n ${value}\r\n${END}`),
);
responses(
  'the text of the status',
  raw((value) => `HTTP/1.1 200 ${value}\r\n${END}`),
);
responses(
  'an informational response',
  raw((value) => `HTTP/1.1 103 ${value}\r\nLink: <${value}>\r\n\r\nHTTP/1.1 200 OK\r\n${END}`),
  raw((value) => `HTTP/1.1 101 ${value}\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n${value}`),
);
responses(
  'the extension of a chunk',
  raw(
    (value) =>
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x="${value.replaceAll('"', '')}"\r\nok\r\n0\r\n\r\n`,
  ),
);
responses('a trailer', (response, request) => {
  response.writeHead(200, { trailer: 'x-echo' });
  response.addTrailers({ 'x-echo': tokenOf(request) });
  response.end('ok');
});
responses(
  'bytes after the end of the response',
  raw((value) => `HTTP/1.1 200 OK\r\n${END}${value}`),
);
responses(
  'a response without a head',
  raw((value) => `${value}\r\n\r\n`),
  raw((value) => `HTTP/0.9 ${value}`),
);
responses('an error with a challenge', (response, request) => {
  response.writeHead(401, { 'www-authenticate': `Bearer realm="${tokenOf(request)}"` }).end(tokenOf(request));
});

attempt('a redirect to the agent’s own server, with the value in its address', async ({ echo, ownServer }) => {
  for (const status of [301, 302, 303, 307, 308, 300]) {
    const location = (value: string): string => `http://127.0.0.1:${ownServer.port}/?${encodeURIComponent(value)}`;
    const answer = await echo({ method: 'POST', body: 'x' }, (response, request) => {
      response.writeHead(status, { location: location(tokenOf(request)), refresh: `0;${tokenOf(request)}` }).end();
    });
    assert.equal(answer.body.data.status, status);
  }
  assert.equal(ownServer.requests.length, 0);
});

attempt(
  'a value that lies across the longest body of a call',
  async ({ echo }) => {
    for (const before of [1, 20].map((less) => 2 * 1024 * 1024 - less)) {
      const answer = await echo({}, (response, request) => response.end(`${'.'.repeat(before)}${tokenOf(request)}..`));
      assert.equal(answer.status, 200);
    }
  },
  ['one call'],
);
attempt('a body that breaks off within the value', async ({ echo }) => {
  const answer = await echo({}, (response, request) => {
    response.writeHead(200, { 'content-length': 1000 });
    response.write(tokenOf(request).slice(0, -1), () => request.socket.destroy());
  });
  assert.equal(answer.status, 502, answer.text);
});
attempt('half of the value in each of two ranges', async ({ setResponse, use }) => {
  const attempts: readonly Readonly<Record<string, string>>[] = [
    { range: 'bytes=0-16' },
    { Range: 'bytes=17-', 'If-Range': '"a"' },
    { RANGE: 'bytes=-9' },
    { 'x-ms-range': 'bytes=0-16' },
    { 'Request-Range': 'bytes=17-' },
    { 'X-Byte_Range': 'bytes=0-16' },
  ];
  for (const headers of attempts) {
    setResponse((response, request) => {
      const given = Object.entries(request.headers).find(([name]) => name.includes('range'))?.[1];
      const [, from = '', to = ''] = /bytes=(\d*)-(\d*)/.exec(String(given)) ?? [];
      const value = tokenOf(request);
      response.end(value.slice(Number(from), to === '' ? undefined : Number(to)));
    });
    assert.equal((await use({ headers })).body.data.body, '[secret]');
  }
});
attempt('query: the address in Link, Location, a page, and escaped within another address', async (fixture) => {
  const { echo, origin, upstream } = fixture;
  await echo({ path: PATHS.query, url: `${origin}/v1/a?b=1` }, (response, request) => {
    const { url = '' } = request;
    const links = {
      link: `<${origin}${url}&page=2>; rel="next"`,
      location: `${origin}${url}`,
      'content-location': url,
    };
    response.writeHead(302, { ...links, refresh: `0; url=/login?return_to=${encodeURIComponent(url)}` });
    response.end(`<a href="${url.replaceAll('&', '&amp;')}">${encodeURIComponent(encodeURIComponent(url))}</a>`);
  });
  assert.match(upstream.requests.at(-1)?.url ?? '', /^\/v1\/a\?b=1&key=sk-t3st%2B/);
});

/** The headers that the upstream gets, names and values, when the agent sends these. */
async function receivedOf(
  { setResponse, upstream, use }: TheftFixture,
  headers: Record<string, string>,
  fields = {},
): Promise<readonly string[]> {
  setResponse((response) => response.end());
  assert.equal((await use({ headers, ...fields })).status, 200);
  return upstream.requests.at(-1)?.rawHeaders ?? [];
}

attempt('a mark for the value in the address, a header or the body, which is replaced nowhere', async (fixture) => {
  const { setResponse, upstream, use } = fixture;
  setResponse((response, request) => request.pipe(response));
  const marks = '{value} $VALUE {{value}} [secret] %VALUE%';
  const answer = await use({ method: 'POST', headers: { 'x-mark': marks }, body: marks });
  assert.equal(answer.body.data.body, marks);
  assert.equal(upstream.requests.at(-1)?.headers['x-mark'], marks);
});
attempt('methods that repeat the request, make a tunnel, or carry more than a method', async (fixture) => {
  const { admin, assertRefused, origin: ownOrigin, upstream } = fixture;
  const methods = ['TRACE', 'TRACK', 'CONNECT', 'get', 'GET /v1/other HTTP/1.1', 'GET\r\nX: y', 'PRI', 'OPTIONS', ''];
  await assertRefused(methods.map((method) => ({ method })));
  for (const method of ['TRACE', 'TRACK', 'CONNECT', 'get']) {
    const tracing = [{ origin: ownOrigin, methods: [method], ca_pem: upstream.caPem }];
    const answer = await admin.put('/api/v1/targets/theft/bearer', { targets: tracing, placement: bearer });
    assert.equal(answer.status, 400, answer.text);
  }
});
attempt('a second authority, in every header and spelling that a server might prefer', async (fixture) => {
  const names = ['Authorization', 'authorization', 'AUTHORIZATION', 'Proxy-Authorization', 'X-Api-Key', 'x_api_key'];
  const more = [
    'Cookie',
    'cookie',
    'Api-Key',
    'Private-Token',
    'X-Auth-Token',
    'Proxy-Connection',
    'proxy_authorization',
  ];
  // The headers that may have the token of the base URL: a second one is rejected.
  const isToken = (name: string): boolean => /^(?:authorization|x-api-key|api-key)$/i.test(name);
  const all = [...names, ...more].filter((name) => fixture.endpoint === 'one call' || !isToken(name));
  for (const name of [...names, ...more].filter((each) => !all.includes(each)))
    await fixture.assertRefused([{ headers: { [name]: 'Bearer of-the-thief' } }]);
  const received = await receivedOf(fixture, Object.fromEntries(all.map((name) => [name, 'Bearer of-the-thief'])));
  assert.equal(received.includes('Bearer of-the-thief'), false);
  assert.deepEqual(
    received.filter((_, at) => /^authorization$/i.test(received[at - 1] ?? '')),
    [`Bearer ${VALUE}`],
  );
});
attempt(
  'an upgrade, after which messages have another form',
  async ({ setResponse, upstream, use }) => {
    setResponse((response) => response.end('ok'));
    upstream.server.on('upgrade', (request, socket) => {
      socket.on('error', () => undefined);
      socket.end(`HTTP/1.1 101 a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n${tokenOf(request)}`);
    });
    const headers = {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Key': 'a',
      'Sec-WebSocket-Version': '13',
    };
    const answer = await use({ headers });
    upstream.server.removeAllListeners('upgrade');
    assert.equal(answer.body.data.body, 'ok');
  },
  ['one call'],
);
