// An agent that may use a credential cannot get its value through what the upstream answers. theft-forms.ts has
// encodings, theft-routes.ts the server's own routes.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import zlib from 'node:zlib';
import { alignments, attempt, PATHS, type Respond, tokenOf, VALUE } from './theft-fixture.ts';

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

const CODINGS = {
  gzip: zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: zlib.brotliCompressSync,
  zstd: zlib.zstdCompressSync,
} as const;
for (const [coding, encode] of Object.entries(CODINGS)) {
  attempt(`a body that is compressed with ${coding} although it was not asked for`, async ({ echo }) => {
    for (const status of [200, 203, 205, 404, 500]) {
      await echo({}, (response, request) => {
        response.writeHead(status, { 'content-encoding': coding }).end(encode(Buffer.from(tokenOf(request))));
      });
    }
  });
}
attempt(
  'a body with two codings, in members, or with a coding that is unknown or not named in the usual form',
  async ({ echo }) => {
    const gzip = (text: string | Uint8Array): Buffer => zlib.gzipSync(text);
    const rows: readonly [header: string | string[], encode: (value: string) => Buffer, status: number][] = [
      ['gzip, br', (value) => zlib.brotliCompressSync(gzip(value)), 200],
      [['gzip', 'gzip'], (value) => gzip(gzip(value)), 200],
      ['gzip', (value) => Buffer.concat([gzip(value.slice(0, 9)), gzip(value.slice(9))]), 200],
      ['GZIP , identity', (value) => gzip(value), 200],
      ['aes128gcm', (value) => Buffer.from(value), 502],
      ['gzip;q=1', (value) => gzip(value), 502],
    ];
    for (const [header, encode, status] of rows) {
      const answer = await echo({}, (response, request) => {
        response.setHeader('content-encoding', header);
        response.end(encode(tokenOf(request)));
      });
      assert.equal(answer.status, status, String(header));
    }
  },
);
attempt('a body in a transfer coding', async ({ echo }) => {
  const answer = await echo({}, (response, request) => {
    response.writeHead(200, { 'transfer-encoding': 'gzip, chunked' }).end(zlib.gzipSync(tokenOf(request)));
  });
  assert.equal(answer.status, 502, answer.text);
});

attempt('a body that arrives byte by byte, as an event stream or not', async ({ echo }) => {
  for (const type of ['text/event-stream', 'text/plain']) {
    const answer = await echo({}, async (response, request) => {
      response.writeHead(200, { 'content-type': type });
      for (const byte of `data: ${tokenOf(request)}\n\n`) {
        response.write(byte);
        await sleep(1);
      }
      response.end();
    });
    assert.equal(answer.body.data.body, 'data: [secret]\n\n');
  }
});
attempt('a value that lies across the longest body', async ({ echo }) => {
  for (const before of [0, 1, 6, 20, 40].map((less) => 2 * 1024 * 1024 - less)) {
    const answer = await echo({}, (response, request) => response.end(`${'.'.repeat(before)}${tokenOf(request)}..`));
    assert.equal(answer.status, 200);
  }
});
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
attempt('Basic: the header, the user with the value, and base64 of them at each alignment', async ({ echo }) => {
  const forms: readonly ((header: string) => string)[] = [
    (header) => header,
    () => `robot:${VALUE}`,
    ...[0, 1, 2].map((at) => () => alignments(`robot:${VALUE}`, 'base64')[at] ?? ''),
    ...[0, 1, 2].map((at) => (header: string) => alignments(header, 'base64')[at] ?? ''),
    (header) => encodeURIComponent(header),
    () => `https://robot:${encodeURIComponent(VALUE)}@127.0.0.1/`,
  ];
  for (const form of forms) {
    await echo({ path: PATHS.basic }, (response, request) => response.end(form(request.headers.authorization ?? '')));
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
