// Token spellings and locations that bypassed other servers. SOURCE: docs/decisions.md, "Requests"; RFC 6750.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sendRaw, toResponse } from '../kit/raw.ts';
import { auditEntriesOf } from '../kit/responses.ts';
import { startFixture } from './fixture.ts';

const fixture = await startFixture({ after });
const { adminToken } = fixture.service;
const changedLast = (token: string) => token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A');

test('the scheme may have any case and any number of spaces after it', () =>
  fixture.assertUnchangedBy(async () => {
    for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'bEaReR   ']) {
      const headers = [`Authorization: ${scheme}${adminToken}`];
      assert.equal(await fixture.codeOf({ target: '/api/v1/agents', token: null, headers }), '200', scheme);
    }
  }));

for (const [kind, token] of Object.entries({ administrator: adminToken, session: fixture.agent.token })) {
  /** The value of the Authorization header. */
  const WRONG: Readonly<Record<string, string>> = {
    'nothing at all': '',
    'no scheme': token,
    'no token': 'Bearer',
    'a space for a token': 'Bearer ',
    'no space': `Bearer${token}`,
    'a tab for the space': `Bearer\t${token}`,
    'a colon': `Bearer: ${token}`,
    'an equals sign': `Bearer=${token}`,
    'another scheme': `Basic ${token}`,
    'another scheme, encoded': `Basic ${Buffer.from(`admin:${token}`).toString('base64')}`,
    'a scheme in front': `Basic Bearer ${token}`,
    'two tokens': `Bearer ${token} ${token}`,
    'a list': `Bearer ${token}, Bearer ${token}`,
    'a comma behind it': `Bearer ${token},`,
    'quotes round it': `Bearer "${token}"`,
    'one character less': `Bearer ${token.slice(0, -1)}`,
    'one character more': `Bearer ${token}A`,
    padding: `Bearer ${token}=`,
    'its last character changed': `Bearer ${changedLast(token)}`,
    'its prefix left out': `Bearer ${token.slice(4)}`,
    'its prefix alone': `Bearer ${token.slice(0, 4)}`,
    'upper case': `Bearer ${token.toUpperCase()}`,
    'lower case': `Bearer ${token.toLowerCase()}`,
    'a percent escape': `Bearer ${token.replace('_', '%5F')}`,
    'the standard alphabet': `Bearer ${token.replaceAll('-', '+').replaceAll('_', '/')}=`,
    'a byte beyond ASCII': `Bearer ${token}\u00e9`,
    null: 'Bearer null',
    undefined: 'Bearer undefined',
    'a star': 'Bearer *',
    'the other prefix': `Bearer ${token.startsWith('lha_') ? 'lhs_' : 'lha_'}${token.slice(4)}`,
    '10,000 characters': `Bearer ${'a'.repeat(10_000)}`,
  };

  test(`the token of the ${kind} must match exactly`, () =>
    fixture.assertUnchangedBy(async () => {
      for (const [what, value] of Object.entries(WRONG)) {
        const headers = [`Authorization: ${value}`];
        const code = await fixture.codeOf({ target: '/api/v1/leases', token: null, headers });
        assert.equal(code, 'UNAUTHENTICATED', what);
      }
    }));

  test(`the token of the ${kind} is accepted only in its header`, () =>
    fixture.assertUnchangedBy(async () => {
      const elsewhere = [
        `Cookie: token=${token}`,
        `Cookie: Authorization=Bearer ${token}`,
        `X-Api-Key: ${token}`,
        `X-Vault-Token: ${token}`,
        `Proxy-Authorization: Bearer ${token}`,
        `X-Forwarded-Authorization: Bearer ${token}`,
        `X-Authorization: Bearer ${token}`,
        `Authentication: Bearer ${token}`,
      ];
      for (const header of elsewhere) {
        const code = await fixture.codeOf({ target: '/api/v1/leases', token: null, headers: [header] });
        assert.equal(code, 'UNAUTHENTICATED', header.slice(0, 12));
      }
      for (const name of ['access_token', 'token', 'authorization']) {
        const target = `/api/v1/leases?${name}=${token}`;
        assert.equal(await fixture.codeOf({ target, token: null }), 'UNAUTHENTICATED', name);
      }
      const body = JSON.stringify({ agent: 'insider', access_token: token });
      const revoke = { method: 'POST', target: '/api/v1/leases/revoke', token: null, body };
      assert.equal(await fixture.codeOf(revoke), 'UNAUTHENTICATED');
    }));
}

test('two Authorization headers are 400, even if one is valid, in any spelling of the name', () =>
  fixture.assertUnchangedBy(async () => {
    for (const name of ['Authorization', 'authorization', 'AUTHORIZATION']) {
      for (const value of [`Bearer ${adminToken}`, `Bearer ${fixture.agent.token}`, 'Bearer x', '', 'Basic x']) {
        const headers = [`${name}: ${value}`];
        assert.equal(await fixture.codeOf({ headers }), 'INVALID_REQUEST', name);
        assert.equal(await fixture.codeOf({ headers, target: '/api/v1/health' }), 'INVALID_REQUEST', name);
      }
    }
  }));

test('a token with a line fold, a split or a control character is rejected', () =>
  fixture.assertUnchangedBy(async () => {
    const half = adminToken.length / 2;
    const split = `${adminToken.slice(0, half)}\r\n ${adminToken.slice(half)}`;
    const lines = [
      `Authorization: Bearer\r\n ${adminToken}`,
      `Authorization:\r\n\tBearer ${adminToken}`,
      `Authorization: Bearer ${split}`,
      `Authorization: Bearer ${adminToken}\u0000`,
      `Authorization: Bearer \u0000${adminToken}`,
      `Authorization : Bearer ${adminToken}`,
      `Authorization\u0000: Bearer ${adminToken}`,
      ` Authorization: Bearer ${adminToken}`,
      `X: a\rAuthorization: Bearer ${adminToken}`,
      `X: a\nAuthorization: Bearer ${adminToken}`,
      `Authori\u0000zation: Bearer ${adminToken}`,
    ];
    for (const line of lines) {
      assert.equal(
        await fixture.codeOf({ token: null, headers: [line] }),
        'INVALID_REQUEST',
        JSON.stringify(line.slice(0, 25)),
      );
    }
  }));

test('a header name may contain only token characters', () =>
  fixture.assertUnchangedBy(async () => {
    for (const line of [
      'X(: a',
      'X Y: a',
      ': a',
      'no colon',
      'X\u00e9: a',
      'X\u0000: a',
      'X: a\u0000b',
      'X: a\u0001b',
      '\u0000',
    ]) {
      assert.equal(await fixture.codeOf({ headers: [line] }), 'INVALID_REQUEST', JSON.stringify(line));
    }
  }));

test('a caller cannot set the recorded request id or address', async () => {
  const headers = [
    'X-Request-Id: chosen',
    'X-Forwarded-For: 203.0.113.9',
    'X-Real-IP: 203.0.113.9',
    'Forwarded: for=203.0.113.9',
  ];
  const entries = await auditEntriesOf(fixture.service, async () => {
    const answer = await fixture.ask({ target: '/api/v1/credentials/open/stored', headers });
    assert.notEqual(answer.headers.get('x-request-id'), 'chosen');
  });
  assert.deepEqual(
    entries.map(({ request_id, remote_addr }) => [request_id === 'chosen', remote_addr]),
    [[false, '127.0.0.1']],
  );
});

test('escaped line ends do not inject response headers', () =>
  fixture.assertUnchangedBy(async () => {
    const evil = '%0d%0aSet-Cookie:%20a=b%0d%0a%0d%0a';
    for (const target of [
      `/${evil}`,
      `/api/v1/agents/${evil}`,
      `/api/v1/credentials?type=${evil}`,
      `/api/v1/agents?${evil}=1`,
    ]) {
      const bytes = fixture.bytesOf({ target });
      const answer = await sendRaw(fixture.service.address, bytes);
      assert.equal(toResponse(answer).headers.has('set-cookie'), false);
      assert.equal(/set-cookie/i.test(answer.head + answer.body), false, target);
    }
  }));
