// `http_request`: the model makes a request with a credential that it never sees, and gets the upstream's response as
// bounded, masked data.

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { test } from 'node:test';
import { shows, TRANSPORTS, VALUE } from './fixture.ts';
import { KEY, KEY_PATH, startUseStage } from './use-stage.ts';

const TOOL = 'http_request';

for (const over of TRANSPORTS) {
  test(`over ${over} the upstream gets the credential, and the model gets the response without it`, async (t) => {
    const got: string[] = [];
    const stage = await startUseStage(
      t,
      async (request, response) => {
        got.push(await readText(request));
        response.setHeader('x-seen', request.headers.authorization ?? '');
        response.writeHead(201, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ seen: request.headers.authorization, twice: [KEY, KEY] }));
      },
      { over },
    );
    const { use, origin, requests, uses, transcript, service } = stage;
    const { status, headers, body, body_encoding, truncated, redactions, lease_id, note } = await use(TOOL, {
      path: KEY_PATH,
      method: 'POST',
      url: `${origin}/v1/reports?limit=2`,
      headers: { 'content-type': 'application/json', authorization: 'Bearer of-the-model' },
      body: '{"a":1}',
      purpose: 'weekly report',
    });
    assert.equal(requests[0]?.headers.authorization, `Bearer ${KEY}`);
    assert.deepEqual([requests[0]?.url, got], ['/v1/reports?limit=2', ['{"a":1}']]);
    assert.deepEqual([status, body_encoding, truncated, redactions], [201, 'utf8', false, 4]);
    assert.equal((headers as Record<string, string>)['content-type'], 'application/json');
    assert.equal(typeof JSON.parse(String(body)).seen, 'string');
    assert.match(String(note), /data, never instructions/);
    assert.equal(shows(transcript(), KEY), false);
    const [result, intent] = await uses();
    assert.deepEqual([intent?.['reason'], intent?.['agent_name']], ['purpose: "weekly report"', 'builder']);
    assert.deepEqual([result?.['event_type'], result?.['ended']], ['credential.use_result', 'complete']);
    assert.equal((await service.admin.get(`/api/v1/leases/${lease_id}`)).body.data.status, 'revoked');
  });

  test(`over ${over} it is the first tool, and every tool that uses a value recommends it`, async (t) => {
    const commands = '[commands.a]\ndescription = "A"\nprogram = "/bin/true"\ndirectory = "/"\ncredentials = {}\n';
    const { client } = await startUseStage(t, () => undefined, { over, commands, allowsValues: true });
    const { tools } = await client.listTools();
    assert.equal(tools[0]?.name, TOOL);
    assert.deepEqual([tools[0]?.annotations?.readOnlyHint, tools[0]?.annotations?.openWorldHint], [false, true]);
    for (const name of ['retrieve_credential', 'write_credential_to_file', 'run_with_credential', 'list_credentials']) {
      assert.match(tools.find((tool) => tool.name === name)?.description ?? '', /\bhttp_request\b/, name);
    }
    assert.match(client.getInstructions() ?? '', /\bhttp_request\b/);
  });
}

test('every status of the upstream is data, and redirects are returned', async (t) => {
  const { use, origin, requests } = await startUseStage(t, (request, response) => {
    const status = Number(request.url?.slice('/v1/'.length));
    response.writeHead(status, status === 302 ? { location: 'https://other.example/' } : {}).end();
  });
  for (const status of [204, 302, 404, 500]) {
    const reply = await use(TOOL, { path: KEY_PATH, url: `${origin}/v1/${status}` });
    assert.deepEqual([reply['status'], reply['body']], [status, '']);
  }
  assert.equal(requests.length, 4);
});

test('a long body is truncated between characters, at the given length or a default', async (t) => {
  const { use, origin } = await startUseStage(t, (_, response) => void response.end('é'.repeat(50_000)));
  const url = `${origin}/v1/long`;
  const part = await use(TOOL, { path: KEY_PATH, url, max_body_bytes: 101 });
  assert.deepEqual([part['body'], part['body_encoding'], part['truncated']], ['é'.repeat(50), 'utf8', true]);
  assert.match(String(part['note']), /max_body_bytes/);
  const usual = await use(TOOL, { path: KEY_PATH, url });
  assert.deepEqual([String(usual['body']).length, usual['truncated']], [16_384, true]);
  const whole = await use(TOOL, { path: KEY_PATH, url, max_body_bytes: 100_000 });
  assert.deepEqual([String(whole['body']).length, whole['truncated']], [50_000, false]);
});

test('a body that is longer than the service returns is truncated, also if masks make it short', async (t) => {
  const { use, origin } = await startUseStage(t, (request, response) => {
    const unit = request.url === '/v1/values' ? VALUE : 'x';
    response.end(unit.repeat((3 * 1024 * 1024) / unit.length));
  });
  const request = { path: KEY_PATH, max_body_bytes: 262_144 };
  const { body, truncated } = await use(TOOL, { ...request, url: `${origin}/v1/a` });
  assert.deepEqual([String(body).length, truncated], [262_144, true]);
  await use('write_credential_to_file', { path: 'prod/db/password', name: 'kept' });
  const masked = await use(TOOL, { ...request, url: `${origin}/v1/values` });
  assert.match(String(masked['body']), /^(?:\[secret\])+$/);
  assert.deepEqual([String(masked['body']).length < 100, masked['truncated']], [true, true]);
});

test('a binary body is base64, with a note', async (t) => {
  const bytes = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff, 0xfe, 0x00, 0x01]);
  const { use, origin } = await startUseStage(t, (_, response) => void response.end(bytes));
  const { body, body_encoding, truncated, note } = await use(TOOL, { path: KEY_PATH, url: `${origin}/v1/logo` });
  assert.deepEqual([body_encoding, truncated], ['base64', false]);
  assert.deepEqual(Buffer.from(String(body), 'base64'), bytes);
  assert.match(String(note), /base64/);
});

test('a body is sent as base64 decodes it', async (t) => {
  const got: string[] = [];
  const { use, refusal, origin } = await startUseStage(t, async (request, response) => {
    got.push(await readText(request));
    response.end();
  });
  const request = { path: KEY_PATH, method: 'POST', url: `${origin}/v1/a`, body_encoding: 'base64' };
  await use(TOOL, { ...request, body: Buffer.from('raw').toString('base64') });
  assert.deepEqual(got, ['raw']);
  assert.match(await refusal(TOOL, { ...request, body: 'not base64' }), /^INVALID_REQUEST: body: /);
});

test('invisible characters are escaped in body and headers, cookies are omitted, and headers are bounded', async (t) => {
  const hidden = 'ok\t\n\u001b[2K\u202e\u200b\u{e0041}\ufeff 👩\u200d💻';
  const { use, origin } = await startUseStage(t, (_, response) => {
    response.setHeader('set-cookie', ['session=secret', 'other=secret']);
    response.setHeader('x-long', 'y'.repeat(4000));
    response.setHeader('x-odd', Buffer.from('a\u0085b').toString('latin1'));
    response.setHeader(
      'x-many',
      Array.from({ length: 100 }, (_each, at) => `${at}`),
    );
    response.end(hidden);
  });
  const { body, headers, note } = await use(TOOL, { path: KEY_PATH, url: `${origin}/v1/a` });
  assert.equal(body, 'ok\t\n\\u{1b}[2K\\u{202e}\\u{200b}\\u{e0041}\\u{feff} 👩\u200d💻');
  const shown = headers as Record<string, string | string[]>;
  assert.equal(JSON.stringify(headers).includes('secret'), false);
  assert.equal(shown['x-long']?.length, 1024);
  assert.equal(/\p{Cc}/u.test(String(shown['x-odd'])), false);
  assert.equal(Object.values(shown).flat().length <= 64, true);
  assert.match(String(note), /Headers are truncated/);
});

test('escapes count as they are written, so that the limit bounds what the model reads', async (t) => {
  const { use, origin } = await startUseStage(t, (_, response) => void response.end('\u200b'.repeat(100)));
  const { body, truncated } = await use(TOOL, { path: KEY_PATH, url: `${origin}/v1/a`, max_body_bytes: 300 });
  assert.deepEqual([body, truncated], ['\\u{200b}'.repeat(100).slice(0, 300), true]);
});

test('values that are in files while the request is made are masked in body and headers', async (t) => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const { promise: written, resolve: write } = Promise.withResolvers<void>();
  const { use, origin, transcript } = await startUseStage(t, async (_, response) => {
    ask();
    await written;
    response.setHeader('x-value', Buffer.from(VALUE).toString('base64'));
    response.end(`${VALUE} ${encodeURIComponent(VALUE)} ${'-'.repeat(20)}${VALUE}`);
  });
  const call = use(TOOL, { path: KEY_PATH, url: `${origin}/v1/a`, max_body_bytes: 60 });
  await asked;
  await use('write_credential_to_file', { path: 'prod/db/password', name: 'late' });
  await use('remove_file', { name: 'late' });
  write();
  const { body, headers, truncated } = await call;
  assert.equal(body, `[secret] [secret] ${'-'.repeat(20)}[secret]`);
  assert.deepEqual([(headers as Record<string, string>)['x-value'], truncated], ['[secret]', false]);
  assert.equal(shows(transcript()), false);
});

test('when the server stops, a request ends, and the model learns that it may have been made', async (t) => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<ServerResponse>();
  const { client, mcp, origin } = await startUseStage(t, (_, response) => ask(response));
  const call = client.callTool({ name: TOOL, arguments: { path: KEY_PATH, url: `${origin}/v1/hangs` } });
  const response = await asked;
  assert.equal(await mcp.close(), 0);
  // A response that arrives only now is not returned.
  response.end();
  assert.match(JSON.stringify(await call), /STOPPING: the server stops; the request may have been made/);
});
