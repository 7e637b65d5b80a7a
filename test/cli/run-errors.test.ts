// Errors of `leasehold run` with texts from a service: no text controls the terminal.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { newHome } from '../kit/command.ts';

const ESCAPE = '\u001b]0;taken\u0007\u001b[2J';

/** A foreign service: it issues one lease, and rejects every other request, including revocations. */
const service = createServer((request, response) => {
  const isLent = request.method === 'GET' && request.url?.includes('/lent') === true;
  response.writeHead(isLent ? 200 : 403, { 'content-type': 'application/json' });
  const lent = { path: 'prod/lent', value: 'a value to keep', lease_id: 'one', expires_at: '2099-01-01T00:00:00.000Z' };
  const error = { code: 'ACCESS_DENIED', message: `no ${ESCAPE}` };
  response.end(JSON.stringify(isLent ? { data: lent } : { error }));
});
await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
after(() => service.close());

const { port } = service.address() as AddressInfo;
const home = newHome({ after }, { LEASEHOLD_ADDR: `http://127.0.0.1:${port}`, LEASEHOLD_TOKEN: 'lha_of-nobody' });

function assertHarmless(stderr: string, lines: number): void {
  assert.match(stderr, /no \\u001b\]0;taken/);
  assert.equal(stderr.trimEnd().split('no \\u001b').length - 1, lines, stderr);
  for (const control of ESCAPE.match(/\p{Cc}/gu) ?? []) assert.equal(stderr.includes(control), false);
}

test('each rejection is printed without terminal controls', async () => {
  const { code, stderr } = await home.leasehold(['run', '--env', 'A=prod/a', '--env', 'B=prod/b', '--', 'true']);
  assert.equal(code, 2);
  assertHarmless(stderr, 2);
});

test('the reason why a lease was not revoked is printed without terminal controls', async () => {
  const { code, stderr } = await home.leasehold(['run', '--env', 'A=prod/lent', '--', 'true']);
  assert.equal(code, 0);
  assert.match(stderr, /1 of 1 leases were not revoked/);
  assertHarmless(stderr, 1);
});
