/**
 * Records the rows of a vault that an earlier version wrote, once, at the first start: from then on every row has an
 * entry, and a row without one has no effect. The digest of agents and policies in the head record shows that it was
 * done. A start that was interrupted continues: it records the rows that have no entry yet.
 */

import { adoptRows } from '../core/operations/lifecycle.ts';
import { type RecordedState, SUBJECT, type SubjectKind } from '../core/state.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import type { Store } from '../store/port.ts';
import { scanRows } from '../store/state-scan.ts';
import type { ResultOf } from '../store/statement.ts';
import { isRowAuthentic } from './authenticated-rows.ts';
import type { BatchRunner } from './batch-runner.ts';

const STEP_ROWS = 1000;

/** Rows without a valid MAC are left out, and so have no effect. @throws StoreError */
export async function adoptEarlierRows(runner: BatchRunner, store: Store, keys: VaultKeys): Promise<void> {
  for (const kind of ['credential', 'targets', 'session'] as const) {
    for await (const states of unrecorded(store, keys, kind)) await commit(runner, states, false);
  }
  // ORDER: last, in one batch, which also writes the digest. A node that is late records nothing after it.
  const control: RecordedState[] = [];
  for (const kind of ['agent', 'policy'] as const) {
    for await (const states of unrecorded(store, keys, kind)) control.push(...states);
  }
  await commit(runner, control, true);
}

async function commit(runner: BatchRunner, states: readonly RecordedState[], isLast: boolean): Promise<void> {
  if (states.length === 0 && !isLast) return;
  const { durable } = await runner.run([adoptRows(states, isLast)]);
  await durable;
}

async function* unrecorded(store: Store, keys: VaultKeys, kind: SubjectKind): AsyncGenerator<RecordedState[]> {
  let after: string | null = null;
  do {
    const { rows, next }: ResultOf<typeof scanRows> = await store.run(scanRows(kind, after, STEP_ROWS));
    yield rows.flatMap(({ row, state }) =>
      state === null && isRowAuthentic(kind, keys.row, row)
        ? [{ subject: SUBJECT[kind](row as never), state: row.mac }]
        : [],
    );
    after = next;
  } while (after !== null);
}
