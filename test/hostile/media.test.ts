// Content types that two checks read differently (CVE-2025-32442, CVE-2026-25223). SOURCE: docs/decisions.md,
// "Requests".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertRejected, dataOf } from '../kit/responses.ts';
import { share, startFixture, words } from './fixture.ts';

const CREDENTIALS = '/api/v1/credentials';
const fixture = await startFixture({ after });
const store = (path: string) => JSON.stringify({ path, value: 'v' });
const post = (body: string | Uint8Array, type: string | null = 'application/json', target = CREDENTIALS) => ({
  method: 'POST',
  target,
  body,
  type,
});

const JSON_TYPES = [
  'application/json',
  'Application/JSON',
  'APPLICATION/JSON',
  'application/json; charset=utf-8',
  'application/json;charset=UTF-8',
  'application/json ;charset=utf-8',
  'application/json; charset="utf-8"',
];

test('application/json is accepted in any case and with a charset', async () => {
  for (const type of JSON_TYPES) {
    const answer = await fixture.ask(post(store('open/typed'), type));
    assert.equal(dataOf(answer, 201, 'path type created_at').path, 'open/typed', type);
  }
});

const OTHER_TYPES = [
  ...words`
    text/plain text/json text/html application/x-www-form-urlencoded application/octet-stream application/jsonp
    application/json5 application/ld+json application/json-seq application/x-ndjson application/problem+json
    application/xml application/javascript application/* */* json /json application/ application ; ,
    "application/json" text/plain;application/json application/json\u00e9 applic\u00e4tion/json application\\json
    application//json application/json/
  `,
  'multipart/form-data; boundary=a',
  'application json',
  'x application/json',
  'text/plain, application/json',
  'text/plain; a="application/json"',
];

test('a body of another type or without one is 415 before it is read', () =>
  fixture.assertUnchangedBy(async () => {
    for (const type of [...OTHER_TYPES, null]) {
      assert.equal(await fixture.codeOf(post(store('open/untyped'), type)), 'UNSUPPORTED_MEDIA_TYPE', `${type}`);
    }
    assert.equal(await fixture.codeOf(post('{', 'text/plain')), 'UNSUPPORTED_MEDIA_TYPE');
  }));

/** Servers disagree whether these are JSON; here a body that is accepted is validated like any other. */
const DOUBTFUL_TYPES = [
  'application/json;',
  'application/json ;',
  'application/json\t;charset=utf-8',
  'application/json\t',
  'application/json\ta',
  'application/json,',
  'application/json, text/plain',
  'application/json,application/json',
  'application/json a',
  'application/json;charset',
  'application/json; charset=utf-16',
  'application/json;=',
  'application/json;;',
  ' application/json',
  '\tapplication/json',
  'application /json',
  'application/ json',
  'application/json;a="',
  'application/json\u00a0',
];

test('no spelling of a Content-Type bypasses the schema', () =>
  fixture.assertUnchangedBy(async () => {
    const bodies = [
      '{"path":"open/x","value":"v","admin":true}',
      '{"path":"open/x"}',
      '{"path":"open/x","value":1}',
      '["open/x"]',
      'null',
      '{"path":"open/x","value":"v","value":"w"}',
      '{"path":"open/x","value":"v","__proto__":{}}',
      'path=open/x&value=v',
    ];
    for (const [index, type] of [...DOUBTFUL_TYPES, ...OTHER_TYPES, ...JSON_TYPES].entries()) {
      for (const body of share(bodies, index, 4)) {
        const code = await fixture.codeOf(post(body, type));
        assert.equal(['INVALID_REQUEST', 'UNSUPPORTED_MEDIA_TYPE'].includes(code), true, `${type}: ${body} ${code}`);
      }
    }
  }));

test('two Content-Type headers are rejected, whatever their values', () =>
  fixture.assertUnchangedBy(async () => {
    for (const second of ['text/plain', 'application/json']) {
      const asking = { ...post(store('open/twice')), headers: [`Content-Type: ${second}`] };
      const message = assertRejected(await fixture.ask(asking), 'INVALID_REQUEST');
      assert.equal(message, 'Content-Type: must be given once');
    }
  }));

test('the type of an empty body is ignored; a malformed type is ignored or rejected', async () => {
  for (const [index, type] of [null, ...JSON_TYPES, ...OTHER_TYPES, ...DOUBTFUL_TYPES].entries()) {
    const isWellFormed = type === null || /^[\w*]+\/[\w*.+-]+(?:; ?\w+=[\w-]+)?$/.test(type);
    for (const headers of share([['Content-Length: 0'], ['Transfer-Encoding: chunked'], []], index, 3)) {
      const body = headers[0]?.startsWith('Transfer') ? '0\r\n\r\n' : '';
      const asking = { method: 'DELETE', target: `${CREDENTIALS}/open/none`, type, headers, body };
      const code = await fixture.codeOf(asking);
      const isRefused = !isWellFormed && code === 'UNSUPPORTED_MEDIA_TYPE';
      assert.equal(isRefused ? 'NOT_FOUND' : code, 'NOT_FOUND', `${type} ${headers}`);
    }
  }
});

test('a body with a Content-Encoding other than identity is 415', async () => {
  const coded = (coding: string) => {
    return fixture.ask({ ...post(store('open/coded')), headers: [`Content-Encoding: ${coding}`] });
  };
  for (const coding of ['gzip', 'br', 'deflate, gzip', 'x'])
    assertRejected(await coded(coding), 'UNSUPPORTED_MEDIA_TYPE');
  dataOf(await coded('identity'), 201, 'path type created_at');
});
