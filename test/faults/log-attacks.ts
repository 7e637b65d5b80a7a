/**
 * Structural attacks on a log by a writer of its database without the audit key: what changes, and where a verification
 * must find it. Each runs as SQL against a copy of the vault, whose tables `audit_entries` and `audit_head` are then
 * restored. Columns are named, and rows are copied whole, so that the attacks do not depend on the formats.
 */
import type { Dice } from '../kit/dice.ts';

/** A log to attack. Schema `own` holds its original tables, `fork` those of a longer copy that went on differently. */
export interface AttackedLog {
  readonly entries: number;
  /** The last entry that log and fork share. */
  readonly forkedAt: number;
  /** The log's earlier head record, which schema `early` holds, named this entry. */
  readonly earlyHead: number;
}

export interface Attack {
  readonly sql: string;
  /** Where the first break is; null if the result is a valid earlier log, which only the rollback marker reveals. */
  readonly breakAt: number | null;
}

type Attacker = (log: AttackedLog, dice: Dice) => Attack;

/** Copies one entry of a schema under another sequence number. */
const copyEntry = (schema: string, from: number, to: number): string => `
  CREATE TEMP TABLE copied AS SELECT * FROM ${schema}.audit_entries WHERE seq = ${from};
  UPDATE copied SET seq = ${to};
  INSERT OR REPLACE INTO audit_entries SELECT * FROM copied;
  DROP TABLE copied;`;

const headOf = (schema: string): string => `
  DELETE FROM audit_head; INSERT INTO audit_head SELECT * FROM ${schema}.audit_head;`;

/** 1 ≤ entry < the last one. */
const inside = ({ entries }: AttackedLog, dice: Dice): number => 1 + dice.below(entries - 1);

/** An attack at one entry, where the first break is unless told otherwise. */
const atOne =
  (sql: (seq: number) => string, breakAt: (seq: number, log: AttackedLog) => number = (seq) => seq): Attacker =>
  (log, dice) => {
    const seq = inside(log, dice);
    return { sql: sql(seq), breakAt: breakAt(seq, log) };
  };

/** An attack at two entries, in order; the first break is at the first one. */
const atTwo =
  (sql: (first: number, second: number) => string): Attacker =>
  (log, dice) => {
    const first = inside(log, dice);
    return { sql: sql(first, first + 1 + dice.below(log.entries - first)), breakAt: first };
  };

const afterLast = (_: number, { entries }: AttackedLog): number => entries + 1;

/** An attack on the head record alone. */
const onHead =
  (sql: string): Attacker =>
  ({ entries }) => ({ sql, breakAt: entries + 1 });

const column = (name: string, value: string): Attacker =>
  atOne((seq) => `UPDATE audit_entries SET ${name} = ${value} WHERE seq = ${seq}`);

/** Renumbers by way of numbers that are not in use. */
const shift = (where: string, by: number): string => `
  UPDATE audit_entries SET seq = seq + 1000000 WHERE ${where};
  UPDATE audit_entries SET seq = seq - ${1_000_000 - by} WHERE seq > 1000000;`;

/** The end of the log comes from the fork. */
const joined = (seq: number): string => `
  DELETE FROM audit_entries WHERE seq > ${seq};
  INSERT INTO audit_entries SELECT * FROM fork.audit_entries WHERE seq > ${seq};`;

export const ATTACKS: Readonly<Record<string, Attacker>> = {
  'an entry is deleted': atOne((seq) => `DELETE FROM audit_entries WHERE seq = ${seq}`),
  'an entry is deleted, and the later ones are renumbered': atOne(
    (seq) => `DELETE FROM audit_entries WHERE seq = ${seq}; ${shift(`seq > ${seq}`, -1)}`,
  ),
  'a range of entries is deleted': atTwo(
    (from, to) => `DELETE FROM audit_entries WHERE seq BETWEEN ${from} AND ${to - 1}`,
  ),
  'an entry is inserted, and the later ones are renumbered': atTwo(
    (seq, model) => shift(`seq >= ${seq}`, 1) + copyEntry('own', model, seq),
  ),
  'an entry is replaced by a copy of another one': atTwo((seq, model) => copyEntry('own', model, seq)),
  'an entry is repeated after the last one': (log, dice) => {
    return { sql: copyEntry('own', inside(log, dice), log.entries + 1), breakAt: log.entries + 1 };
  },
  'an entry is repeated far beyond the last one': (log, dice) => {
    return { sql: copyEntry('own', inside(log, dice), log.entries + 500), breakAt: log.entries + 1 };
  },
  'two entries are swapped': atTwo(
    (first, second) => copyEntry('own', first, second) + copyEntry('own', second, first),
  ),
  'entries are in the reverse order': atTwo(
    (first, last) => `
      UPDATE audit_entries SET seq = 1000000 + ${first + last} - seq WHERE seq BETWEEN ${first} AND ${last};
      UPDATE audit_entries SET seq = seq - 1000000 WHERE seq > 1000000`,
  ),
  'the beginning is cut off': atOne(
    (seq) => `DELETE FROM audit_entries WHERE seq <= ${seq}`,
    () => 1,
  ),
  'the beginning is cut off, and the rest is renumbered': atOne(
    (seq) => `DELETE FROM audit_entries WHERE seq <= ${seq}; ${shift('true', -seq)}`,
    () => 1,
  ),
  'the end is cut off': atOne(
    (seq) => `DELETE FROM audit_entries WHERE seq > ${seq}`,
    (seq) => seq + 1,
  ),
  'the end is cut off at an earlier head record': ({ earlyHead }) => {
    return { sql: `DELETE FROM audit_entries WHERE seq > ${earlyHead}; ${headOf('early')}`, breakAt: null };
  },
  'the end is cut off elsewhere than at an earlier head record': ({ earlyHead }, dice) => {
    const seq = earlyHead - 1 - dice.below(100);
    return { sql: `DELETE FROM audit_entries WHERE seq > ${seq}; ${headOf('early')}`, breakAt: seq + 1 };
  },
  'every entry is deleted': () => ({ sql: 'DELETE FROM audit_entries', breakAt: 1 }),
  'the head record is deleted': onHead('DELETE FROM audit_head'),
  'the head record is an earlier one': ({ earlyHead }) => ({ sql: headOf('early'), breakAt: earlyHead + 1 }),
  'the head record is that of a fork': onHead(headOf('fork')),
  'the head record names the next entry': onHead('UPDATE audit_head SET seq = seq + 1'),
  'the head record has the MAC of another entry': atOne(
    (other) => `UPDATE audit_head SET hmac = (SELECT hmac FROM audit_entries WHERE seq = ${other})`,
    afterLast,
  ),
  'the head record has another MAC': onHead("UPDATE audit_head SET mac = lower(mac) || 'x'"),
  'an entry comes from a fork': (log, dice) => {
    // The first one of the fork follows the shared ones, and breaks the chain at the next.
    const seq = log.forkedAt + 2 + dice.below(log.entries - log.forkedAt - 2);
    return { sql: copyEntry('fork', seq, seq), breakAt: seq };
  },
  'the end comes from a fork, with the own head record': ({ forkedAt, entries }) => {
    return { sql: joined(forkedAt), breakAt: entries + 1 };
  },
  'the first entry after a fork comes from the fork': ({ forkedAt }) => {
    return { sql: copyEntry('fork', forkedAt + 1, forkedAt + 1), breakAt: forkedAt + 2 };
  },
  'the end comes from a fork, a little later': (log, dice) => {
    const seq = log.forkedAt + 1 + dice.below(log.entries - log.forkedAt - 1);
    return { sql: joined(seq) + headOf('fork'), breakAt: seq + 1 };
  },
  'the end comes from a fork, with its head record': ({ forkedAt }) => {
    return { sql: joined(forkedAt) + headOf('fork'), breakAt: null };
  },
  'a missing field is empty': column('policy_name', `CASE WHEN policy_name IS NULL THEN '' END`),
  'text moves from a field to the next': column('agent_name', 'agent_name || substr(resource, 1, 1)'),
  'two fields are swapped': atOne(
    (seq) => `UPDATE audit_entries SET id = agent_name, agent_name = id WHERE seq = ${seq}`,
  ),
  'a time is later': column('timestamp', `'2999-01-01T00:00:00.000Z'`),
  'a time is earlier': column('timestamp', `'1999-01-01T00:00:00.000Z'`),
  'a time has another spelling': column('timestamp', `replace(timestamp, 'Z', '+00:00')`),
  'a MAC has another spelling': column('hmac', `rtrim(hmac, '=')`),
  'a MAC is that of the previous entry': (log, dice) => {
    const seq = 2 + dice.below(log.entries - 2);
    const previous = `SELECT hmac FROM own.audit_entries WHERE seq = ${seq - 1}`;
    return { sql: `UPDATE audit_entries SET hmac = (${previous}) WHERE seq = ${seq}`, breakAt: seq };
  },
  'a denial is an allowed access': column('result', `CASE result WHEN 'allowed' THEN 'denied' ELSE 'allowed' END`),
};
