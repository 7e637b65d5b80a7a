/**
 * An attacker on many connections beside another agent: while the other one makes its requests, few of the attacker's
 * are served. Counted and not timed, so that a busy machine changes nothing. SOURCE: SECURITY.md, P8.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import type { Scope } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const CONNECTIONS = 32;
const RETRIEVALS = 12;
/** A retrieval would wait for one or two requests of each connection if there were no limits. */
const MAX_SERVED_EACH = CONNECTIONS / 2;

const service = await startTestService({ after });
const victim = await service.agent('victim', { 'open/*': ['retrieve'] });
const attacker = await service.agent('attacker');
await service.admin.post('/api/v1/credentials', { path: 'open/stored', value: 'stored' });

export const KIB = 1024;

/** An object of 2 MiB with as many keys as possible. */
export function manyKeys(): string {
  const bytes = 2 * KIB * KIB;
  const members = Array.from({ length: bytes / 8 }, (_, n) => `"k${n}":1`).join(',');
  return `{${members.slice(0, bytes - 20)}":1}`;
}

/** Repeats the request on every connection after each response, and reconnects. Returns the number of responses. */
function attack(scope: Scope, address: string, request: Buffer): () => number {
  let served = 0;
  let isOver = false;
  const open = (): void => {
    const socket = connect({ port: Number(new URL(address).port), host: '127.0.0.1', noDelay: true });
    let text = '';
    socket.on('connect', () => socket.write(request));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      if (end === -1) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
      if (text.length < end + 4 + length) return;
      served += 1;
      const isClosing = /\r\nconnection: close/i.test(text.slice(0, end));
      text = '';
      if (isClosing) socket.destroy();
      else socket.write(request);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (!isOver) open();
    });
    scope.after(() => {
      isOver = true;
      socket.destroy();
    });
  };
  for (let count = 0; count < CONNECTIONS; count++) open();
  return () => served;
}

/** `line`: the method and the path of the attacker's requests. */
export function testFairness(what: string, line: string, body: string): void {
  test(`${what}, on ${CONNECTIONS} connections: another agent does not wait for it`, async (t) => {
    const head = [
      `${line} HTTP/1.1`,
      'Host: localhost',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `Authorization: Bearer ${attacker.token}`,
    ];
    const served = attack(t, service.address, Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`));
    while (served() < 2) assert.equal((await victim.get('/api/v1/credentials/open/stored')).status, 200);
    const before = served();
    for (let count = 0; count < RETRIEVALS; count++)
      assert.equal((await victim.get('/api/v1/credentials/open/stored')).status, 200);
    const during = served() - before;
    t.diagnostic(`${during} of the attacker's requests during ${RETRIEVALS} retrievals`);
    assert.ok(during <= MAX_SERVED_EACH * RETRIEVALS, `${during} of the attacker's requests were served`);
  });
}
