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
  const { command, now, auth, lease, fresh, challenge, checked } = ask;
  const isAdmin = auth.kind === 'admin';
  return {
    command,
    now,
    token: isAdmin ? 'admin' : auth.tokenHash,
    ownName: isAdmin ? 'admin' : auth.agentName,
    lease,
    fresh,
    value: storedBy(ask),
    challenge: { id: challenge.id, expiresAt: challenge.expiresAt, wasIssuedToAgent: challenge.boundTo !== null },
    provenFor: checked?.isValid ? checked.agentId : null,
  };
}

/** Compares every response, every entry, and the whole state after every batch. */
function holdAgainstModel({ turns, ...settings }: History): void {
  const world = new World(settings);
  const model = new Model(settings);
  for (const turn of turns) {
    for (const { ask, code, reply, entry } of world.play(turn)) {
      const said = model.answer(toQuestion(ask));
      assert.deepEqual({ code, reply, entry: plainEntry(entry) }, said, JSON.stringify(ask));
    }
    assert.deepEqual(plainState(world), model.state(world.now));
  }
}

test('the rules respond, record and store as the model does, in every history', () => {
  fc.assert(fc.property(histories, holdAgainstModel), runs(60, 1500));
});
