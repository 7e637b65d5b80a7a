// Tokens as others were fooled by them: spelled otherwise, sent elsewhere, sent twice. SOURCE: decisions, "HTTP"; RFC 6750.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sendRaw, toResponse } from '../kit/raw.ts';
import { auditEntriesOf } from '../kit/responses.ts';
import { startScene } from './fixture.ts';

const scene = await startScene({ after });
const { adminToken } = scene.service;
const changedLast = (token: string) => token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A');

test('the scheme has any case and any number of spaces behind it', () =>
  scene.untouchedBy(async () => {
    for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'bEaReR   ']) {
      const headers = [`Authorization: ${scheme}${adminToken}`];
      assert.equal(await scene.codeOf({ target: '/api/v1/agents', token: null, headers }), '200', scheme);
    }
  }));

for (const [kind, token] of Object.entries({ administrator: adminToken, session: scene.agent.token })) {
  /** What stands behind `Authorization:`. */
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

  test(`the token of the ${kind} counts only as it was given`, () =>
    scene.untouchedBy(async () => {
      for (const [what, value] of Object.entries(WRONG)) {
        const headers = [`Authorization: ${value}`];
        const code = await scene.codeOf({ target: '/api/v1/leases', token: null, headers });
        assert.equal(code, 'UNAUTHENTICATED', what);
      }
    }));

  test(`the token of the ${kind} counts nowhere but in its header`, () =>
    scene.untouchedBy(async () => {
      const elsewhere = [
        ...[`Cookie: token=${token}`, `Cookie: Authorization=Bearer ${token}`, `X-Api-Key: ${token}`],
        ...[
          `X-Vault-Token: ${token}`,
          `Proxy-Authorization: Bearer ${token}`,
          `X-Forwarded-Authorization: Bearer ${token}`,
        ],
        ...[`X-Authorization: Bearer ${token}`, `Authentication: Bearer ${token}`],
      ];
      for (const header of elsewhere) {
        const code = await scene.codeOf({ target: '/api/v1/leases', token: null, headers: [header] });
        assert.equal(code, 'UNAUTHENTICATED', header.slice(0, 12));
      }
      for (const name of ['access_token', 'token', 'authorization']) {
        const target = `/api/v1/leases?${name}=${token}`;
        assert.equal(await scene.codeOf({ target, token: null }), 'UNAUTHENTICATED', name);
      }
      const body = JSON.stringify({ agent: 'insider', access_token: token });
      const revoke = { method: 'POST', target: '/api/v1/leases/revoke', token: null, body };
      assert.equal(await scene.codeOf(revoke), 'UNAUTHENTICATED');
    }));
}

test('two Authorization headers are 400, whichever of them would do, in any spelling of the name', () =>
  scene.untouchedBy(async () => {
    for (const name of ['Authorization', 'authorization', 'AUTHORIZATION']) {
      for (const value of [`Bearer ${adminToken}`, `Bearer ${scene.agent.token}`, 'Bearer x', '', 'Basic x']) {
        const headers = [`${name}: ${value}`];
        assert.equal(await scene.codeOf({ headers }), 'INVALID_REQUEST', name);
        assert.equal(await scene.codeOf({ headers, target: '/api/v1/health' }), 'INVALID_REQUEST', name);
      }
    }
  }));

test('a token that is folded, split or hidden behind a control character is refused', () =>
  scene.untouchedBy(async () => {
    const half = adminToken.length / 2;
    const split = `${adminToken.slice(0, half)}\r\n ${adminToken.slice(half)}`;
    const lines = [
      ...[
        `Authorization: Bearer\r\n ${adminToken}`,
        `Authorization:\r\n\tBearer ${adminToken}`,
        `Authorization: Bearer ${split}`,
      ],
      ...[`Authorization: Bearer ${adminToken}\u0000`, `Authorization: Bearer \u0000${adminToken}`],
      ...[`Authorization : Bearer ${adminToken}`, `Authorization\u0000: Bearer ${adminToken}`],
      ...[` Authorization: Bearer ${adminToken}`, `X: a\rAuthorization: Bearer ${adminToken}`],
      ...[`X: a\nAuthorization: Bearer ${adminToken}`, `Authori\u0000zation: Bearer ${adminToken}`],
    ];
    for (const line of lines) {
      assert.equal(
        await scene.codeOf({ token: null, headers: [line] }),
        'INVALID_REQUEST',
        JSON.stringify(line.slice(0, 25)),
      );
    }
  }));

test('a header name may hold only what a token may', () =>
  scene.untouchedBy(async () => {
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
      assert.equal(await scene.codeOf({ headers: [line] }), 'INVALID_REQUEST', JSON.stringify(line));
    }
  }));

test('a caller chooses neither the request id nor the address that is recorded', async () => {
  const headers = [
    'X-Request-Id: chosen',
    'X-Forwarded-For: 203.0.113.9',
    'X-Real-IP: 203.0.113.9',
    'Forwarded: for=203.0.113.9',
  ];
  const entries = await auditEntriesOf(scene.service, async () => {
    const answer = await scene.ask({ target: '/api/v1/credentials/open/stored', headers });
    assert.notEqual(answer.headers.get('x-request-id'), 'chosen');
  });
  assert.deepEqual(
    entries.map(({ request_id, remote_addr }) => [request_id === 'chosen', remote_addr]),
    [[false, '127.0.0.1']],
  );
});

test('line ends that are smuggled in as escapes make no header of an answer', () =>
  scene.untouchedBy(async () => {
    const evil = '%0d%0aSet-Cookie:%20a=b%0d%0a%0d%0a';
    for (const target of [
      `/${evil}`,
      `/api/v1/agents/${evil}`,
      `/api/v1/credentials?type=${evil}`,
      `/api/v1/agents?${evil}=1`,
    ]) {
      const bytes = scene.bytesOf({ target });
      const answer = await sendRaw(scene.service.address, bytes);
      assert.equal(toResponse(answer).headers.has('set-cookie'), false);
      assert.equal(/set-cookie/i.test(answer.head + answer.body), false, target);
    }
  }));
