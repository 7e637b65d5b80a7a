/**
 * Slows guessing: failed verifies are limited per agent and address together, and per address. A place is taken before the
 * signature is checked, and given back where the try did not fail. SOURCE: decisions, "Authentication".
 */
import { Fault } from '../core/fault.ts';
import type { AgentName } from '../core/names.ts';

interface Limit {
  readonly burst: number;
  readonly perSecond: number;
}

const PER_AGENT_AND_ADDRESS: Limit = { burst: 60, perSecond: 1 };
const PER_ADDRESS: Limit = { burst: 300, perSecond: 10 };
/** Buckets kept at most of each kind; the one that is the longest unused goes first. */
const MAX_BUCKETS = 20_000;

class Buckets {
  readonly #limit: Limit;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(limit: Limit) {
    this.#limit = limit;
  }

  /** Takes one; 0 where it was had, else the seconds until there is one. */
  take(key: string, now: number): number {
    const { burst, perSecond } = this.#limit;
    const before = this.#buckets.get(key) ?? { tokens: burst, at: now };
    const tokens = Math.min(burst, before.tokens + ((now - before.at) / 1000) * perSecond);
    const isFree = tokens >= 1;
    // Set anew, so that the map's order is that of the last use.
    this.#buckets.delete(key);
    this.#buckets.set(key, { tokens: isFree ? tokens - 1 : tokens, at: now });
    if (this.#buckets.size > MAX_BUCKETS) {
      const oldest = this.#buckets.keys().next();
      if (!oldest.done) this.#buckets.delete(oldest.value);
    }
    return isFree ? 0 : Math.max(1, Math.ceil((1 - tokens) / perSecond));
  }

  giveBack(key: string): void {
    const bucket = this.#buckets.get(key);
    if (bucket !== undefined) bucket.tokens = Math.min(this.#limit.burst, bucket.tokens + 1);
  }
}

export class FailureLimiter {
  readonly #byAgent = new Buckets(PER_AGENT_AND_ADDRESS);
  readonly #byAddress = new Buckets(PER_ADDRESS);

  /** Returns what gives the place back. @throws RATE_LIMITED with the seconds to wait. */
  take(agent: AgentName, remoteAddr: string | null, now: number): () => void {
    const address = networkOf(remoteAddr ?? 'local');
    const both = `${agent.toLowerCase()} ${address}`;
    const wait = this.#byAddress.take(address, now);
    if (wait > 0) throw limited(wait);
    const waitOfAgent = this.#byAgent.take(both, now);
    if (waitOfAgent > 0) {
      this.#byAddress.giveBack(address);
      throw limited(waitOfAgent);
    }
    return () => {
      this.#byAddress.giveBack(address);
      this.#byAgent.giveBack(both);
    };
  }
}

function limited(seconds: number): Fault {
  return new Fault('RATE_LIMITED', `Too many failed logins from this address. Try again in ${seconds} s.`, seconds);
}

/** An IPv4 address as it is; of an IPv6 address the first 64 bits, which one host has to itself. */
function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const first = head.split(':').filter((group) => group !== '');
  const rest = tail === undefined ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, 8 - first.length - rest.length)).fill('0');
  return [...first, ...(tail === undefined ? [] : zeros), ...rest]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
