/**
 * Moves the clocks of a service: the wall clock of this process, and on PostgreSQL that of the database, which decides
 * there. Timers and the monotonic clock are unchanged. Other tests are not affected: files of one process run one after
 * the other, and each database has its own offset.
 */
import { mock } from 'node:test';
import { sqlStateOf } from '../../src/store/postgres/errors.ts';
import type { Scope } from './directory.ts';
import { querySql } from './postmaster.ts';
import { prepareDatabases } from './stores.ts';

/** SOURCE: postgresql.org/docs/current/errcodes-appendix.html, invalid_catalog_name. */
const DROPPED = '3D000';

export interface TestClock {
  /**
   * Sets the clock forward, or back with a negative number, from the time that it would show if it had advanced since
   * it was last set, as the clocks of a vault and of a database do. A service in this process sees it immediately; with
   * a database it sees it in its next batch.
   */
  move(milliseconds: number): Promise<void>;
  /** Sets it to the timestamp. */
  moveTo(timestamp: string): Promise<void>;
  /** Moves the clock of a database too that the test has made itself and that nothing has opened yet. */
  follow(url: string): Promise<void>;
}

/**
 * Renames PostgreSQL's clock function and puts one in its place that adds the test's offset. WHY not a search_path: the
 * store sets its own, and PostgreSQL's functions come before it. Statements that were planned before keep using the
 * original.
 */
const MOVABLE = `
  ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO unmoved_timestamp;
  CREATE TABLE public.moved (by_ms double precision NOT NULL);
  INSERT INTO public.moved VALUES (0);
  CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
    AS 'SELECT pg_catalog.unmoved_timestamp() + (SELECT by_ms FROM public.moved) * interval ''1 millisecond''';`;

/** Must be called before the service is started. */
export function startTestClock(scope: Scope): TestClock {
  const now = Date.now.bind(Date);
  const databases: string[] = [];
  let aheadMs = 0;
  const tell = async (url: string): Promise<void> => {
    try {
      await querySql(url, `UPDATE public.moved SET by_ms = ${aheadMs}`);
    } catch (error) {
      // A database is dropped with the service of one test, and the clock moves on in the next.
      if (sqlStateOf(error) !== DROPPED) throw error;
    }
  };
  const follow = async (url: string): Promise<void> => {
    await querySql(url, MOVABLE);
    await tell(url);
    databases.push(url);
  };
  prepareDatabases(scope, follow);
  mock.timers.enable({ apis: ['Date'], now: now() });
  scope.after(() => mock.timers.reset());
  const set = async (time: number): Promise<void> => {
    aheadMs = time - now();
    mock.timers.setTime(time);
    await Promise.all(databases.map(tell));
  };
  return {
    move: (milliseconds) => set(now() + aheadMs + milliseconds),
    moveTo: (timestamp) => set(Date.parse(timestamp)),
    follow,
  };
}
