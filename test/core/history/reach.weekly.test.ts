// The random histories reach every response, so that the properties of this directory are about all of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { histories } from './histories.ts';
import { type Happening, play } from './world.ts';

/** The codes of each command of the administrator and of sessions. */
const REACHED: Readonly<Record<string, string>> = {
  'admin createPolicy': 'OK ALREADY_EXISTS',
  'admin replacePolicy': 'OK',
  'admin deletePolicy': 'OK NOT_FOUND',
  'admin readPolicy': 'OK NOT_FOUND',
  'admin readAudit': 'OK',
  'admin simulate': 'OK',
  'admin register': 'OK ALREADY_EXISTS',
  'admin deregister': 'OK NOT_FOUND',
  'admin retrieve': 'OK ACCESS_DENIED NOT_FOUND',
  'admin store': 'OK ALREADY_EXISTS',
  'admin remove': 'OK NOT_FOUND',
  'admin look': 'OK NOT_FOUND',
  'admin list': 'OK',
  'admin listLeases': 'OK',
  'admin readSession': 'NOT_FOUND',
  'admin endSession': 'NOT_FOUND',
  'admin readLease': 'OK NOT_FOUND',
  'admin renew': 'OK ACCESS_DENIED LEASE_ENDED NOT_FOUND',
  'admin revoke': 'OK NOT_FOUND',
  'admin revokeMany': 'OK',
  'session createPolicy': 'ACCESS_DENIED',
  'session replacePolicy': 'ACCESS_DENIED',
  'session deletePolicy': 'ACCESS_DENIED',
  'session readPolicy': 'ACCESS_DENIED',
  'session readAudit': 'ACCESS_DENIED',
  'session register': 'ACCESS_DENIED',
  'session deregister': 'ACCESS_DENIED',
  'session simulate': 'OK ACCESS_DENIED',
  'session retrieve': 'OK ACCESS_DENIED NOT_FOUND SESSION_EXPIRED UNAUTHENTICATED',
  'session store': 'OK ACCESS_DENIED ALREADY_EXISTS',
  'session remove': 'OK ACCESS_DENIED NOT_FOUND',
  'session look': 'OK ACCESS_DENIED NOT_FOUND',
  'session list': 'OK',
  'session listLeases': 'OK',
  'session readSession': 'OK SESSION_EXPIRED UNAUTHENTICATED',
  'session endSession': 'OK',
  'session verify': 'OK AUTH_FAILED',
  'session start': 'OK',
  'session readLease': 'OK NOT_FOUND',
  'session renew': 'OK ACCESS_DENIED LEASE_ENDED NOT_FOUND',
  'session revoke': 'OK NOT_FOUND',
  'session revokeMany': 'OK ACCESS_DENIED',
};

function outcomeOf({ ask, code, reply }: Happening): string {
  const some = ask.command.kind === 'revokeMany' && Number(reply) > 0 ? ' some' : '';
  return `${ask.auth.kind} ${ask.command.kind} ${code}${some}`;
}

test('the histories reach every response', () => {
  const drawn = fc.sample(histories, { numRuns: 1000, seed: 7 });
  const reached = new Set(drawn.flatMap((history) => play(history).happened.map(outcomeOf)));
  const wanted = Object.entries(REACHED).flatMap(([who, codes]) => codes.split(' ').map((code) => `${who} ${code}`));
  const some = ['admin revokeMany OK some', 'session revokeMany OK some'];
  assert.deepEqual(
    [...wanted, ...some].filter((outcome) => !reached.has(outcome)),
    [],
  );
});
