// Collects how long each answer of a load took. The clock and the processor's time begin with the first answer: preparing is no
// part of a load. Its time may be left out while the answer counts for the rate.

import type { LoadResult } from './loads.ts';
import { percentile } from './measure.ts';

export class Stopwatch {
  readonly #times: number[] = [];
  #count = 0;
  #firstAt = 0;
  #lastAt = 0;
  #usedAtFirst = process.cpuUsage();

  /** Null for an answer whose time says nothing of the server. */
  answered(milliseconds: number | null): void {
    this.#lastAt = performance.now();
    if (milliseconds !== null) this.#times.push(milliseconds);
    this.#count += 1;
    if (this.#count > 1) return;
    this.#firstAt = this.#lastAt;
    this.#usedAtFirst = process.cpuUsage();
  }

  result(): LoadResult {
    const { user, system } = process.cpuUsage(this.#usedAtFirst);
    const seconds = (this.#lastAt - this.#firstAt) / 1000;
    const sorted = Float64Array.from(this.#times).sort();
    return {
      answered: this.#count,
      perSecond: (this.#count - 1) / seconds,
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
      p999Ms: percentile(sorted, 0.999),
      busy: (user + system) / 1e6 / seconds,
    };
  }
}
