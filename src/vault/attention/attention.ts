/**
 * What an operator should look at, derived from the vault as it is. The work is bounded: each part has half a
 * second, and a result that took long is shown for twenty times as long.
 */
import type { AttentionItem } from '../../core/attention.ts';
import { SingleFlight } from '../../ledger/single-flight.ts';
import { examineDenials, examineLogins, examinePolicies } from './access.ts';
import { examineHoldings } from './holdings.ts';
import { examineEvidence } from './lateness.ts';
import type { AttentionPart, AttentionVault } from './part.ts';

const LONG_MS = 50;
const REST_FACTOR = 20;
const PARTS = [examineEvidence, examineHoldings, examineDenials, examinePolicies, examineLogins];

export interface AttentionList {
  readonly items: readonly AttentionItem[];
  readonly isComplete: boolean;
}

export class AttentionReader {
  readonly #runs: SingleFlight<AttentionList>;
  #latest: AttentionList | null = null;
  #validUntil = 0;

  constructor(vault: AttentionVault) {
    this.#runs = new SingleFlight(() => this.#examine(vault));
  }

  async read(): Promise<AttentionList> {
    if (this.#latest !== null && performance.now() < this.#validUntil) return this.#latest;
    return this.#runs.run(new AbortController().signal);
  }

  async #examine(vault: AttentionVault): Promise<AttentionList> {
    const startedAt = performance.now();
    const parts: AttentionPart[] = [];
    for (const examine of PARTS) parts.push(await examine(vault));
    this.#latest = {
      items: parts.flatMap(({ items }) => items),
      isComplete: parts.every(({ isComplete }) => isComplete),
    };
    const now = performance.now();
    this.#validUntil = now - startedAt < LONG_MS ? 0 : now + REST_FACTOR * (now - startedAt);
    return this.#latest;
  }
}
