/**
 * Reads the rows held in memory that other nodes changed. Rows and removals store the epoch of the batch that wrote
 * them.
 */
import { HELD_RESOURCES, type HeldResource } from '../../core/change.ts';
import { subjectOf } from '../../core/state.ts';
import { newestState, toStates } from '../recorded-states.ts';
import { RESOURCE_TABLES } from '../schema.ts';
import { raw } from '../statement.ts';
import type { ControlChanges, HeldPut, HeldRemove } from '../store.ts';
import type { Table } from '../table.ts';
import type { Connection } from './connection.ts';
import { textArray } from './dialect.ts';

/** A node that missed more epochs reloads everything. Removals are kept for longer. */
const MAX_EPOCHS_BEHIND = 10_000;
export const EPOCHS_RETAINED = 2 * MAX_EPOCHS_BEHIND;

/** Null if the node is too far behind and must reload everything. @throws errors of the driver */
export async function readControl(
  connection: Connection,
  afterEpoch: number,
  epoch: number,
): Promise<ControlChanges | null> {
  if (epoch - afterEpoch > MAX_EPOCHS_BEHIND || epoch < afterEpoch) return null;
  const [removed, ...changed] = await Promise.all([
    connection.query`SELECT resource, id, name FROM control_removals
      WHERE epoch > ${afterEpoch}::bigint AND epoch <= ${epoch}::bigint`,
    ...HELD_RESOURCES.map((resource) => readChanged(connection, resource, afterEpoch, epoch)),
  ]);
  const removals = removed.flatMap(({ resource: given, id, name }): HeldRemove[] => {
    // Only a row that was written outside Leasehold has another word.
    const resource = HELD_RESOURCES.find((each) => each === given);
    const row = { id: String(id), name: String(name) };
    return resource === undefined ? [] : [{ kind: 'remove', resource, row } as HeldRemove];
  });
  const puts = changed.flat();
  const subjects = new Set([...removals, ...puts].map(({ resource, row }) => subjectOf(resource, row)));
  const states = await connection.query`SELECT changed.subject, ${newestState(raw('changed.subject'))} AS state
    FROM (SELECT unnest(${textArray(subjects)}::text[]) COLLATE "C") AS changed (subject)`;
  return { removals, puts, states: new Map(toStates(states)) };
}

async function readChanged(
  connection: Connection,
  resource: HeldResource,
  afterEpoch: number,
  epoch: number,
): Promise<HeldPut[]> {
  const table: Table<object> = RESOURCE_TABLES[resource];
  const rows = await connection.query`SELECT ${table.list} FROM ${raw(table.name)}
    WHERE epoch > ${afterEpoch}::bigint AND epoch <= ${epoch}::bigint`;
  return rows.map((row) => ({ kind: 'put', resource, row: table.decode(row) }) as HeldPut);
}
