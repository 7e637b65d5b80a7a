/**
 * Structural attacks on a log by a writer of its database without the audit key: what changes, and where a verification
 * must find it. Each runs as SQL against a copy of the vault, whose tables `audit_entries` and `audit_head` are then
 * restored. Columns are named, and rows are copied whole, so that the attacks do not depend on the formats.
 */
import type { Dice } from '../e2e/random.ts';

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

/** Two entries, in order. */
function twoOf(log: AttackedLog, dice: Dice): readonly [number, number] {
  const first = inside(log, dice);
  return [first, first + 1 + dice.below(log.entries - first)];
}

const column =
  (name: string, value: string): Attacker =>
  (log, dice) => {
    const seq = inside(log, dice);
    return { sql: `UPDATE audit_entries SET ${name} = ${value} WHERE seq = ${seq}`, breakAt: seq };
  };

export const ATTACKS: Readonly<Record<string, Attacker>> = {
  'an entry is deleted': (log, dice) => {
    const seq = inside(log, dice);
    return { sql: `DELETE FROM audit_entries WHERE seq = ${seq}`, breakAt: seq };
  },
  'an entry is deleted, and the later ones are renumbered': (log, dice) => {
    const seq = inside(log, dice);
    return {
      sql: `DELETE FROM audit_entries WHERE seq = ${seq};
        UPDATE audit_entries SET seq = seq + 1000000 WHERE seq > ${seq};
        UPDATE audit_entries SET seq = seq - 1000001 WHERE seq > 1000000`,
      breakAt: seq,
    };
  },
  'a range of entries is deleted': (log, dice) => {
    const [from, to] = twoOf(log, dice);
    return { sql: `DELETE FROM audit_entries WHERE seq BETWEEN ${from} AND ${to - 1}`, breakAt: from };
  },
  'an entry is inserted, and the later ones are renumbered': (log, dice) => {
    const [seq, model] = twoOf(log, dice);
    return {
      sql: `UPDATE audit_entries SET seq = seq + 1000001 WHERE seq >= ${seq};
        UPDATE audit_entries SET seq = seq - 1000000 WHERE seq > 1000000; ${copyEntry('own', model, seq)}`,
      breakAt: seq,
    };
  },
  'an entry is replaced by a copy of another one': (log, dice) => {
    const [seq, model] = twoOf(log, dice);
    return { sql: copyEntry('own', model, seq), breakAt: seq };
  },
  'an entry is repeated after the last one': (log, dice) => {
    return { sql: copyEntry('own', inside(log, dice), log.entries + 1), breakAt: log.entries + 1 };
  },
  'an entry is repeated far beyond the last one': (log, dice) => {
    return { sql: copyEntry('own', inside(log, dice), log.entries + 500), breakAt: log.entries + 1 };
  },
  'two entries are swapped': (log, dice) => {
    const [first, second] = twoOf(log, dice);
    return { sql: copyEntry('own', first, second) + copyEntry('own', second, first), breakAt: first };
  },
  'entries are in the reverse order': (log, dice) => {
    const [first, last] = twoOf(log, dice);
    return {
      sql: `UPDATE audit_entries SET seq = 1000000 + ${first + last} - seq WHERE seq BETWEEN ${first} AND ${last};
        UPDATE audit_entries SET seq = seq - 1000000 WHERE seq > 1000000`,
      breakAt: first,
    };
  },
  'the beginning is cut off': (log, dice) => {
    return { sql: `DELETE FROM audit_entries WHERE seq <= ${inside(log, dice)}`, breakAt: 1 };
  },
  'the beginning is cut off, and the rest is renumbered': (log, dice) => {
    const seq = inside(log, dice);
    return {
      sql: `DELETE FROM audit_entries WHERE seq <= ${seq};
        UPDATE audit_entries SET seq = seq + 1000000; UPDATE audit_entries SET seq = seq - ${1_000_000 + seq}`,
      breakAt: 1,
    };
  },
  'the end is cut off': (log, dice) => {
    const seq = inside(log, dice);
    return { sql: `DELETE FROM audit_entries WHERE seq > ${seq}`, breakAt: seq + 1 };
  },
  'the end is cut off at an earlier head record': ({ earlyHead }) => {
    return { sql: `DELETE FROM audit_entries WHERE seq > ${earlyHead}; ${headOf('early')}`, breakAt: null };
  },
  'the end is cut off elsewhere than at an earlier head record': ({ earlyHead }, dice) => {
    const seq = earlyHead - 1 - dice.below(100);
    return { sql: `DELETE FROM audit_entries WHERE seq > ${seq}; ${headOf('early')}`, breakAt: seq + 1 };
  },
  'every entry is deleted': () => ({ sql: 'DELETE FROM audit_entries', breakAt: 1 }),
  'the head record is deleted': ({ entries }) => ({ sql: 'DELETE FROM audit_head', breakAt: entries + 1 }),
  'the head record is an earlier one': ({ earlyHead }) => ({ sql: headOf('early'), breakAt: earlyHead + 1 }),
  'the head record is that of a fork': ({ entries }) => ({ sql: headOf('fork'), breakAt: entries + 1 }),
  'the head record names the next entry': ({ entries }) => {
    return { sql: 'UPDATE audit_head SET seq = seq + 1', breakAt: entries + 1 };
  },
  'the head record has the MAC of another entry': (log, dice) => {
    const other = inside(log, dice);
    return {
      sql: `UPDATE audit_head SET hmac = (SELECT hmac FROM audit_entries WHERE seq = ${other})`,
      breakAt: log.entries + 1,
    };
  },
  'the head record has another MAC': ({ entries }) => {
    return { sql: `UPDATE audit_head SET mac = lower(mac) || 'x'`, breakAt: entries + 1 };
  },
  'an entry comes from a fork': (log, dice) => {
    // The first one of the fork follows the shared ones, and breaks the chain at the next.
    const seq = log.forkedAt + 2 + dice.below(log.entries - log.forkedAt - 2);
    return { sql: copyEntry('fork', seq, seq), breakAt: seq };
  },
  'the end comes from a fork, with the own head record': ({ forkedAt, entries }) => ({
    sql: `DELETE FROM audit_entries WHERE seq > ${forkedAt};
      INSERT INTO audit_entries SELECT * FROM fork.audit_entries WHERE seq > ${forkedAt}`,
    breakAt: entries + 1,
  }),
  'the first entry after a fork comes from the fork': ({ forkedAt }) => {
    return { sql: copyEntry('fork', forkedAt + 1, forkedAt + 1), breakAt: forkedAt + 2 };
  },
  'the end comes from a fork, a little later': (log, dice) => {
    const seq = log.forkedAt + 1 + dice.below(log.entries - log.forkedAt - 1);
    return {
      sql: `DELETE FROM audit_entries WHERE seq > ${seq};
        INSERT INTO audit_entries SELECT * FROM fork.audit_entries WHERE seq > ${seq}; ${headOf('fork')}`,
      breakAt: seq + 1,
    };
  },
  'the end comes from a fork, with its head record': ({ forkedAt }) => ({
    sql: `DELETE FROM audit_entries WHERE seq > ${forkedAt};
      INSERT INTO audit_entries SELECT * FROM fork.audit_entries WHERE seq > ${forkedAt}; ${headOf('fork')}`,
    breakAt: null,
  }),
  'a missing field is empty': (log, dice) => {
    const seq = inside(log, dice);
    return {
      sql: `UPDATE audit_entries SET policy_name = CASE WHEN policy_name IS NULL THEN '' END WHERE seq = ${seq}`,
      breakAt: seq,
    };
  },
  'text moves from a field to the next': column('agent_name', `agent_name || substr(resource, 1, 1)`),
  'two fields are swapped': (log, dice) => {
    const seq = inside(log, dice);
    return { sql: `UPDATE audit_entries SET id = agent_name, agent_name = id WHERE seq = ${seq}`, breakAt: seq };
  },
  'a time is later': column('timestamp', `'2999-01-01T00:00:00.000Z'`),
  'a time is earlier': column('timestamp', `'1999-01-01T00:00:00.000Z'`),
  'a time has another spelling': column('timestamp', `replace(timestamp, 'Z', '+00:00')`),
  'a MAC has another spelling': column('hmac', `rtrim(hmac, '=')`),
  'a MAC is that of the previous entry': (log, dice) => {
    const seq = 2 + dice.below(log.entries - 2);
    return {
      sql: `UPDATE audit_entries SET hmac = (SELECT hmac FROM own.audit_entries WHERE seq = ${seq - 1}) WHERE seq = ${seq}`,
      breakAt: seq,
    };
  },
  'a denial is an allowed access': (log, dice) => {
    const seq = inside(log, dice);
    return {
      sql: `UPDATE audit_entries SET result = CASE result WHEN 'allowed' THEN 'denied' ELSE 'allowed' END WHERE seq = ${seq}`,
      breakAt: seq,
    };
  },
};
