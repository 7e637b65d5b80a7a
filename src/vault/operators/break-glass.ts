/**
 * The administrator's token as break-glass: once an operator has the role admin, its use leaves a separate entry and a
 * line in the server log. SOURCE: docs/operators.md, "The administrator's token".
 */
import type { Context } from '../../core/operation.ts';
import type { Clock } from '../../ledger/clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { recordBreakGlass } from './operator-operations.ts';

/** WHY not every request: its entry names the administrator already. */
const INTERVAL_MS = 15 * 60_000;

export class BreakGlass {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #warn: (line: string) => void;
  #recordedAt = Number.NEGATIVE_INFINITY;
  /** The entry being written, for which further uses wait. */
  #recording: Promise<void> | null = null;

  constructor(ledger: Ledger, clock: Clock, warn: (line: string) => void) {
    this.#ledger = ledger;
    this.#clock = clock;
    this.#warn = warn;
  }

  /** Whether a use of the token is to be recorded now. */
  isDue(): boolean {
    if (!this.#ledger.memory.control.hasAdmin()) return false;
    return this.#clock.now() - this.#recordedAt >= INTERVAL_MS;
  }

  /** @throws UNAVAILABLE if the entry cannot be written: then the token is not used either */
  record(context: Context): Promise<void> {
    this.#recording ??= this.#record(context).finally(() => {
      this.#recording = null;
    });
    return this.#recording;
  }

  async #record(context: Context): Promise<void> {
    await this.#ledger.submit(recordBreakGlass(context));
    this.#recordedAt = this.#clock.now();
    this.#warn(
      "the administrator's token is in use, although there is an operator with the role admin; see operator.break_glass in the audit log",
    );
  }
}
