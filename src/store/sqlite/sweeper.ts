/** Deletes rows that ended long ago, in one transaction with the time that justifies it. */
import type { DatabaseSync } from 'node:sqlite';
import { type Procedure, sql } from '../statement.ts';
import type { SweepResult } from '../store.ts';
import { sweepRows } from '../sweep.ts';
import { inTransaction } from './database.ts';
import { ExpiredLeaseSweeper } from './expired-lease-sweeper.ts';
import { Statements } from './statements.ts';

/** Excludes the commit, which takes about as long again. */
const STEP_MS = 2;
/** Rows of sessions and challenges are at random positions, each on a separate page. */
const CHUNK_ROWS = 32;

export class Sweeper {
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #leases = new ExpiredLeaseSweeper();

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#statements = new Statements(database);
  }

  sweep(now: number, limit: number): SweepResult {
    try {
      return inTransaction(this.#database, () => this.#statements.run(this.#sweep(now, limit)));
    } catch (error) {
      this.#leases.reset();
      throw error;
    }
  }

  *#sweep(now: number, limit: number): Procedure<SweepResult> {
    yield sql`UPDATE vault SET high_water_time = max(high_water_time, ${now})`;
    const bounds = { limit, chunkRows: CHUNK_ROWS, timeMs: STEP_MS };
    return yield* sweepRows(now, bounds, [this.#leases.remove]);
  }
}
