/** Reads what the log records about rows: the newest state of each. SOURCE: docs/formats.md, "State in the log". */
import { REMOVED } from '../core/state.ts';
import { type Procedure, type Row, type Statement, sql } from './statement.ts';

/** The state of the newest entry with the subject; null if none has it. */
export const newestState = (subject: Statement): Statement =>
  sql`(SELECT state FROM audit_entries WHERE subject = ${subject} ORDER BY seq DESC LIMIT 1)`;

export function* readNewestState(subject: string): Procedure<string | null> {
  const [row] = yield sql`SELECT ${newestState(sql`${subject}`)} AS state`;
  return typeof row?.['state'] === 'string' ? row['state'] : null;
}

/** By subject, those of agents, operators, policies and the keyset. Removed ones are left out. */
export function* readControlStates(): Procedure<Map<string, string>> {
  const states = new Map<string, string>();
  for (const [from, before] of [
    ['agent:', 'agent;'],
    ['operator:', 'operator;'],
    ['policy:', 'policy;'],
    ['keyset', 'keyset:'],
  ] as const) {
    const rows = yield sql`SELECT newest.subject, e.state
      FROM (SELECT subject, max(seq) AS seq FROM audit_entries
        WHERE subject >= ${from} AND subject < ${before} GROUP BY subject) AS newest
      JOIN audit_entries e ON e.subject = newest.subject AND e.seq = newest.seq WHERE e.state <> ${REMOVED}`;
    for (const [subject, state] of toStates(rows)) states.set(subject, state);
  }
  return states;
}

export function toStates(rows: readonly Row[]): [subject: string, state: string][] {
  return rows.flatMap(({ subject, state }) => (state === null ? [] : [[String(subject), String(state)]]));
}
