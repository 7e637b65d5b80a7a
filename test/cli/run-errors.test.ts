// `leasehold run` with a foreign server: no text of it controls the terminal, and if it becomes unreachable the
// program's exit code is kept.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { until } from '../kit/log-receivers.ts';
import { runScript } from './run-fixture.ts';

const ESCAPE = '\u001b]0;taken\u0007\u001b[2J';

/** It issues leases on one path, and rejects every other request, including revocations. */
const server = createServer((request, response) => {
  const isLent = request.method === 'GET' && request.url?.includes('/lent') === true;
  response.writeHead(isLent ? 200 : 403, { 'content-type': 'application/json' });
  const lent = { path: 'prod/lent', value: 'a value to keep', lease_id: 'one', expires_at: '2099-01-01T00:00:00.000Z' };
  const error = { code: 'ACCESS_DENIED', message: `no ${ESCAPE}` };
  response.end(JSON.stringify(isLent ? { data: lent } : { error }));
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
after(() => server.close());

const { port } = server.address() as AddressInfo;
const home = newHome({ after }, { LEASEHOLD_ADDR: `http://127.0.0.1:${port}`, LEASEHOLD_TOKEN: 'lha_of-nobody' });

function assertHarmless(stderr: string, lines: number): void {
  assert.match(stderr, /no \\u001b\]0;taken/);
  assert.equal(stderr.trimEnd().split('no \\u001b').length - 1, lines, stderr);
  for (const control of ESCAPE.match(/\p{Cc}/gu) ?? []) assert.equal(stderr.includes(control), false);
}

test('rejections, and the reason why a lease was not revoked, are printed without terminal controls', async () => {
  const rejected = await runScript(home, ['--env', 'A=prod/a', '--env', 'B=prod/b'], 'true');
  assert.equal(rejected.code, 2);
  assertHarmless(rejected.stderr, 2);
  const { code, stderr } = await runScript(home, ['--env', 'A=prod/lent'], 'true');
  assert.equal(code, 0);
  assert.match(stderr, /1 of 1 leases were not revoked/);
  assertHarmless(stderr, 1);
});

test('a server that became unreachable is reported at the end, and the program’s exit code is kept', async () => {
  const [ready, go] = ['ready', 'go'].map((name) => join(home.path, name));
  const script = 'echo >"$HOME/ready"; while [ ! -e "$HOME/go" ]; do sleep 0.05; done; exit 4';
  const running = runScript(home, ['--env', 'A=prod/lent'], script);
  await until(() => existsSync(ready ?? ''));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  writeFileSync(go ?? '', '');
  const { code, stderr } = await running;
  assert.equal(code, 4);
  assert.match(stderr, /^leasehold: 1 of 1 leases were not revoked and will expire: no response from /);
});
