// Random histories, decided by src/core in batches and by a simple model one at a time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { runs } from '../../kit/property.ts';
import type { History } from './commands.ts';
import { histories } from './histories.ts';
import { Model } from './model.ts';
import { plainEntry, plainState } from './observing.ts';
import { storedBy } from './operations.ts';
import type { Question } from './plain.ts';
import { type Ask, World } from './world.ts';

function toQuestion(ask: Ask): Question {
  const { command, now, authentication, lease, fresh, challenge, checked } = ask;
  const isAdmin = authentication.kind === 'admin';
  return {
    command,
    now,
    token: isAdmin ? 'admin' : authentication.tokenHash,
    ownName: isAdmin ? 'admin' : authentication.agentName,
    lease,
    fresh,
    value: storedBy(ask),
    challenge: { id: challenge.id, expiresAt: challenge.expiresAt, wasIssuedToAgent: challenge.boundTo !== null },
    provenFor: checked?.isValid ? checked.agentId : null,
  };
}

/**
 * Compares every response, every entry, and the whole state after every batch. Returns the outcomes of each command.
 */
function holdAgainstModel({ turns, ...settings }: History): string[] {
  const world = new World(settings);
  const model = new Model(settings);
  const outcomes: string[] = [];
  for (const turn of turns) {
    for (const { ask, code, reply, entry } of world.play(turn)) {
      const said = model.answer(toQuestion(ask));
      assert.deepEqual({ code, reply, entry: plainEntry(entry) }, said, JSON.stringify(ask));
      const some = ask.command.kind === 'revokeMany' && Number(reply) > 0 ? ' some' : '';
      outcomes.push(`${ask.authentication.kind} ${ask.command.kind} ${code}${some}`);
    }
    assert.deepEqual(plainState(world), model.state(world.now));
  }
  return outcomes;
}

test('the rules respond, record and store as the model does, in every history', () => {
  fc.assert(
    fc.property(histories, (history) => {
      holdAgainstModel(history);
    }),
    runs(150, 1500),
  );
});

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

test('the histories reach every response', () => {
  const drawn = fc.sample(histories, { numRuns: 1000, seed: 7 });
  const reached = new Set(drawn.flatMap(holdAgainstModel));
  const wanted = Object.entries(REACHED).flatMap(([who, codes]) => codes.split(' ').map((code) => `${who} ${code}`));
  const some = ['admin revokeMany OK some', 'session revokeMany OK some'];
  assert.deepEqual(
    [...wanted, ...some].filter((outcome) => !reached.has(outcome)),
    [],
  );
});
