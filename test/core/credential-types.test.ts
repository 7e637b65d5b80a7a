// Types with behaviour: parsed when a value is stored, rendered when it is retrieved; other types change nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BatchState, LoadedRows } from '../../src/core/batch-state.ts';
import { ControlState } from '../../src/core/control.ts';
import { parseValue } from '../../src/core/credential.ts';
import { behaviourOf, type CredentialTypes } from '../../src/core/credential-types.ts';
import { invalidRequest } from '../../src/core/errors.ts';
import { type EntryId, parseCredentialType } from '../../src/core/names.ts';
import { store } from '../../src/core/operations/credentials.ts';
import { retrieve } from '../../src/core/operations/retrieve.ts';
import { parsePath } from '../../src/core/path.ts';
import { Secret } from '../../src/core/secret.ts';
import { decided } from '../kit/decided.ts';

const CONTEXT = { authentication: { kind: 'admin' }, requestId: 'r', remoteAddr: null } as const;
const PATH = parsePath('prod/key');
const MOMENT = { now: 1000, seq: 1, entryId: 'entry' as EntryId, newId: () => 'id' };
const TYPES: CredentialTypes = new Map([
  [
    'shout',
    {
      parse(text: string) {
        if (text === 'bad') throw invalidRequest('value', 'must not be bad');
        return new Secret(text.toUpperCase());
      },
      render: (stored: Secret, now: number) => new Secret(`${stored.reveal()} at ${now}`),
    },
  ],
]);

/** Stores the value under the type, and retrieves it. */
function roundTrip(type: string, value: string): string {
  const known = new BatchState(new ControlState([], []), new LoadedRows(), {
    adminMayRetrieve: true,
    versionsKept: 10,
  });
  const more = { type: parseCredentialType(type), description: undefined, onlyIfNew: false };
  const stored = store(CONTEXT, { path: PATH, value: parseValue(value), ...more }, TYPES).decide(known, MOMENT);
  for (const change of stored.changes) known.apply(change);
  const { response } = retrieve(CONTEXT, { path: PATH, version: null, ttlSeconds: null }, TYPES).decide(known, MOMENT);
  assert.ok('unseal' in response && response.unseal.content instanceof Secret);
  return decided(response.unseal.reply(response.unseal.content)).value.reveal();
}

test('a type with behaviour parses the value that is stored, and renders it at the time of the retrieval', () => {
  assert.equal(roundTrip('shout', 'hello'), 'HELLO at 1000');
  assert.throws(() => roundTrip('shout', 'bad'), { code: 'INVALID_REQUEST' });
});

test('a type without a row stores and retrieves the value unchanged', () => {
  for (const type of ['generic', 'token', 'constructor']) {
    assert.equal(roundTrip(type, 'hello'), 'hello');
    const behaviour = behaviourOf(TYPES, parseCredentialType(type));
    assert.equal(behaviour.render(behaviour.parse('hello'), 0).reveal(), 'hello');
  }
});
