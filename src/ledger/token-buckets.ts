/**
 * Token buckets, one per key, in this node's memory: a key spends what it has, and earns the burst again over an
 * interval. The least recently used bucket is forgotten, which fills it.
 */
import { LRUCache } from 'lru-cache';

const MAX_BUCKETS = 20_000;

export interface Bucket {
  /** May be negative: the last expense may be larger than what was left. */
  tokens: number;
  /** Tokens that work in progress may still spend. */
  reserved: number;
  /** The time at which `tokens` was computed. */
  at: number;
}

export class TokenBuckets {
  readonly #burst: number;
  readonly #intervalMs: number;
  /** WHY no `max`: a cache with one takes the memory of all its entries, half a MiB, while it is empty. */
  readonly #buckets = new LRUCache<string, Bucket>({ maxSize: MAX_BUCKETS, sizeCalculation: () => 1 });

  /** A key has `burst` tokens, and earns as many in `intervalMs`. */
  constructor(burst: number, intervalMs: number) {
    this.#burst = burst;
    this.#intervalMs = intervalMs;
  }

  /** The key's bucket with its tokens at `now`, in milliseconds. Keys with a burst of their own always give it. */
  at(key: string, now: number, burst = this.#burst): Bucket {
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = { tokens: burst, reserved: 0, at: now };
      this.#buckets.set(key, bucket);
    }
    const earned = (Math.max(0, now - bucket.at) * burst) / this.#intervalMs;
    bucket.tokens = Math.min(burst, bucket.tokens + earned);
    bucket.at = now;
    return bucket;
  }

  /** Seconds until the bucket has a token. */
  waitSeconds({ tokens }: Bucket, burst = this.#burst): number {
    return Math.max(1, Math.ceil(((1 - tokens) * this.#intervalMs) / burst / 1000));
  }
}
