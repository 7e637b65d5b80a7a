/** Runs scans of the state for callers, who share one of a kind, and one slowly in the background after a start. */
import { setTimeout as sleep } from 'node:timers/promises';
import { SingleFlight } from '../../../ledger/single-flight.ts';
import { type ScanParts, type StateCheck, scanState } from './state-scan.ts';

/** The background scan waits so many times longer than a step took. */
const PAUSE_FACTOR = 9;

export class StateChecker {
  readonly #parts: ScanParts;
  readonly #rows: SingleFlight<StateCheck>;
  readonly #values: SingleFlight<StateCheck>;
  #checked = 0;

  constructor(parts: ScanParts) {
    this.#parts = parts;
    this.#rows = new SingleFlight((signal) => this.#scan(signal, false));
    this.#values = new SingleFlight((signal) => this.#scan(signal, true));
  }

  /** What the running scan has checked so far; 0 if none runs. */
  get checked(): number {
    return this.#checked;
  }

  /** Ends soon after the signal. @throws the signal's reason; StoreError */
  check(signal: AbortSignal, withValues: boolean): Promise<StateCheck> {
    return (withValues ? this.#values : this.#rows).run(signal);
  }

  /** Checks everything but values, with a tenth of a processor at most. */
  checkSlowly(signal: AbortSignal): Promise<StateCheck> {
    return this.#scan(signal, false, PAUSE_FACTOR);
  }

  async #scan(signal: AbortSignal, withValues: boolean, pauseFactor = 0): Promise<StateCheck> {
    let found: StateCheck = { checked: 0, problemCount: 0, problems: [] };
    let stepAt = performance.now();
    try {
      for await (found of scanState(this.#parts, withValues)) {
        signal.throwIfAborted();
        if (pauseFactor > 0) await sleep((performance.now() - stepAt) * pauseFactor, undefined, { signal });
        else this.#checked = found.checked;
        stepAt = performance.now();
      }
      return found;
    } finally {
      this.#checked = 0;
    }
  }
}
