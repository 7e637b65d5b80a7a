// An intent is recorded first and its result later: two operations, two entries, one id.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BatchState, LoadedRows } from '../../src/core/batch-state.ts';
import { ControlState } from '../../src/core/control.ts';
import type { EntryId } from '../../src/core/names.ts';
import { intent, result } from './intents.ts';

const known = new BatchState(new ControlState([], []), new LoadedRows(), { adminMayRetrieve: true, versionsKept: 10 });
const at = (entryId: string, seq: number) => ({ now: 0, seq, entryId: entryId as EntryId, newId: () => 'id' });

test('an intent replies the id of its entry, and the entry of its result names that id', () => {
  const begun = intent('begin').decide(known, at('first', 1));
  assert.ok('reply' in begun.response);
  assert.equal(begun.response.reply, 'first');
  assert.equal(begun.entry?.completes, undefined);
  const ended = result('end', begun.response.reply, 'error').decide(known, at('second', 2));
  assert.deepEqual([ended.entry?.completes, ended.entry?.result], ['first', 'error']);
});
