/**
 * Reads the rows held in memory that other nodes changed. Rows and removals store the epoch of the batch that wrote
 * them.
 */
import { HELD_RESOURCES, type HeldResource } from '../../core/resources.ts';
import { newestState, subjectIn, toStates } from '../recorded-states.ts';
import { RESOURCE_TABLES } from '../schema.ts';
import { raw, type Statement, sql } from '../statement.ts';
import type { ControlChanges, HeldPut, HeldRemove } from '../store.ts';
import type { Table } from '../table.ts';
import type { Connection } from './connection.ts';

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
  // WHY without the epoch of the head as its end: a row that was altered outside may have any, and must be denied.
  const isMissed = sql`epoch > ${afterEpoch}::bigint`;
  const subjects = HELD_RESOURCES.map(
    (resource) => sql`SELECT ${subjectIn(resource)} FROM ${raw(RESOURCE_TABLES[resource].name)} WHERE ${isMissed}
      UNION SELECT ${subjectIn(resource, 'control_removals')} FROM control_removals WHERE resource = ${resource} AND ${isMissed}`,
  ).reduce((all, each) => sql`${all} UNION ${each}`);
  const [removed, states, ...changed] = await Promise.all([
    connection.query`SELECT resource, id, name FROM control_removals WHERE ${isMissed}`,
    connection.query`SELECT changed.subject, ${newestState(raw('changed.subject'))} AS state
      FROM (${subjects}) AS changed (subject)`,
    ...HELD_RESOURCES.map((resource) => readChanged(connection, resource, isMissed)),
  ]);
  const removals = removed.flatMap(({ resource: given, id, name }): HeldRemove[] => {
    // Only a row that was written outside Leasehold has another word.
    const resource = HELD_RESOURCES.find((each) => each === given);
    const row = { id: String(id), name: String(name) };
    return resource === undefined ? [] : [{ kind: 'remove', resource, row } as HeldRemove];
  });
  return { removals, puts: changed.flat(), states: new Map(toStates(states)) };
}

async function readChanged(connection: Connection, resource: HeldResource, isMissed: Statement): Promise<HeldPut[]> {
  const table: Table<object> = RESOURCE_TABLES[resource];
  const rows = await connection.query`SELECT ${table.list} FROM ${raw(table.name)} WHERE ${isMissed}`;
  return rows.map((row) => ({ kind: 'put', resource, row: table.decode(row) }) as HeldPut);
}
