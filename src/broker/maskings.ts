/**
 * The compiled values of orders. WHY kept for a few seconds: compiling takes half of the time of a small use, and an
 * agent that uses a credential once mostly uses it again. Then they are dropped, so that an idle broker has no values.
 */
import { Secret } from '../core/secret.ts';
import { compileMasking, type Masking } from '../masking/masking.ts';
import { renderedForms } from './injection.ts';
import type { Order } from './protocol.ts';

const IDLE_MS = 10_000;
/** Each takes a quarter of a MiB or more. */
const MAX_KEPT = 32;

interface Kept {
  readonly masking: Masking;
  readonly expiry: NodeJS.Timeout;
}

export class Maskings {
  readonly #kept = new Map<string, Kept>();

  /**
   * A masking of the value, its rendered forms and the order's further values. `nextTurn` is awaited between the pieces
   * of the work, of at most a few milliseconds each.
   */
  async for(
    order: Pick<Order, 'placement' | 'value' | 'redact'>,
    nextTurn: () => Promise<unknown> = async () => undefined,
  ): Promise<Masking> {
    const values = [...new Set([...renderedForms(order), ...order.redact])];
    const key = JSON.stringify(values);
    const kept = this.#kept.get(key) ?? (await this.#compile(key, values, nextTurn));
    kept.expiry.refresh();
    // The last used is the last.
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#drop(oldest);
    return kept.masking;
  }

  clear(): void {
    for (const key of [...this.#kept.keys()]) this.#drop(key);
  }

  /** WHY each caller compiles for itself: otherwise it would wait for the turns of another. */
  async #compile(key: string, values: readonly string[], nextTurn: () => Promise<unknown>): Promise<Kept> {
    const pieces = compileMasking(values.map((value) => ['value', new Secret(value)] as const));
    for (;;) {
      const { done, value } = pieces.next();
      if (done === true) return { masking: value, expiry: setTimeout(() => this.#drop(key), IDLE_MS).unref() };
      await nextTurn();
    }
  }

  #drop(key: string): void {
    clearTimeout(this.#kept.get(key)?.expiry);
    this.#kept.delete(key);
  }
}
