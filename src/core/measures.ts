/**
 * Plain counters, which the layers keep where something happens and the metrics read when they are scraped. Counting
 * costs a few ten nanoseconds and knows nothing of Prometheus. Labels come from closed sets, never from a request.
 */

export class Counter<Label extends string = string> {
  readonly #counts = new Map<Label, number>();

  /** A counter with labels starts with zeros, so that a rate sees the first event. */
  constructor(labels: readonly Label[] = []) {
    for (const label of labels) this.#counts.set(label, 0);
  }

  add(label: Label, amount = 1): void {
    this.#counts.set(label, (this.#counts.get(label) ?? 0) + amount);
  }

  get(label: Label): number {
    return this.#counts.get(label) ?? 0;
  }

  entries(): readonly (readonly [Label, number])[] {
    return [...this.#counts];
  }
}

/** Counts per pair of labels. WHY not a joined label: building and hashing its text takes longer than both lookups. */
export class LabelledCounter {
  readonly #tallies = new Map<string, Counter>();

  add(first: string, second: string): void {
    let tally = this.#tallies.get(first);
    if (tally === undefined) {
      tally = new Counter();
      this.#tallies.set(first, tally);
    }
    tally.add(second);
  }

  get(first: string, second: string): number {
    return this.#tallies.get(first)?.get(second) ?? 0;
  }

  entries(): readonly (readonly [first: string, second: string, count: number])[] {
    return [...this.#tallies].flatMap(([first, tally]) =>
      tally.entries().map(([second, count]) => [first, second, count] as const),
    );
  }
}

const MINUTE_MS = 60_000;
const MINUTES = 60;

export interface MinuteCounts {
  /** The beginning of the minute in milliseconds since 1970. */
  readonly at: number;
  readonly retrievals: number;
  readonly uses: number;
  readonly denials: number;
}

export class LastHour {
  readonly #minutes = Array.from({ length: MINUTES }, () => ({ number: -1, retrievals: 0, uses: 0, denials: 0 }));

  /** `now`: milliseconds since 1970. */
  add(what: 'retrievals' | 'uses' | 'denials', now: number): void {
    const number = Math.floor(now / MINUTE_MS);
    const minute = this.#minutes[number % MINUTES];
    if (minute === undefined) return;
    if (minute.number !== number) Object.assign(minute, { number, retrievals: 0, uses: 0, denials: 0 });
    minute[what] += 1;
  }

  /** Every minute of the last hour, oldest first. */
  read(now: number): readonly MinuteCounts[] {
    const newest = Math.floor(now / MINUTE_MS);
    return this.#minutes.map((_, index) => {
      const number = newest - MINUTES + 1 + index;
      const known = this.#minutes[number % MINUTES];
      const { retrievals, uses, denials } = known?.number === number ? known : { retrievals: 0, uses: 0, denials: 0 };
      return { at: number * MINUTE_MS, retrievals, uses, denials };
    });
  }
}

const SECONDS_BOUNDS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** A histogram: how many values were at most each bound, their number and their sum. */
export class Histogram {
  readonly bounds: readonly number[];
  /** Per bound, not cumulative; the last one counts the values over all bounds. */
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  /** `bounds` increase. */
  constructor(bounds: readonly number[] = SECONDS_BOUNDS) {
    this.bounds = bounds;
    this.#counts = Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const { bounds } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
    this.#count += 1;
  }

  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    return this.#count;
  }

  cumulative(): readonly number[] {
    let total = 0;
    return this.bounds.map((_, at) => {
      total += this.#counts[at] ?? 0;
      return total;
    });
  }
}
