// Collects the time of each response of a load. The clock starts with the first response, so preparation does not
// count.

import { percentile } from './measurement.ts';
import type { LoadResult } from './types.ts';

export class Timer {
  readonly #times: number[] = [];
  #firstAt = 0;
  #lastAt = 0;

  record(milliseconds: number): void {
    this.#lastAt = performance.now();
    if (this.#times.length === 0) this.#firstAt = this.#lastAt;
    this.#times.push(milliseconds);
  }

  result(): LoadResult {
    const answered = this.#times.length;
    const sorted = Float64Array.from(this.#times).sort();
    return {
      answered,
      perSecond: ((answered - 1) * 1000) / (this.#lastAt - this.#firstAt),
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
    };
  }
}
