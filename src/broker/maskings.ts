/**
 * The values of requests, compiled for redaction. WHY kept for a few seconds: compiling takes half of the time of a
 * small request, and an agent that uses a credential once usually uses it again. Then they are dropped, so that an idle
 * broker keeps no values.
 */
import { compileMasking, type Masking } from '../masking/masking.ts';
import { Secret } from '../vault/credentials/credential.ts';
import { renderedForms } from './injection.ts';
import type { UpstreamRequestSpec } from './protocol.ts';
import { type TurnShare, UNLIMITED } from './turns.ts';

const IDLE_MS = 10_000;
const MAX_KEPT = 32;
/** Limit for all kept values together, about 60 MB. A small value has 2,000 states; a large one has up to 500,000. */
const MAX_KEPT_STATES = 2_000_000;

interface Kept {
  readonly masking: Masking;
  readonly expiry: NodeJS.Timeout;
}

export class Maskings {
  readonly #kept = new Map<string, Kept>();
  readonly #compiling = new Map<string, Promise<Masking>>();

  async for(
    spec: Pick<UpstreamRequestSpec, 'caller' | 'placement' | 'value' | 'redact'>,
    share: TurnShare = UNLIMITED,
  ): Promise<Masking> {
    const values = [...new Set([...renderedForms(spec), ...spec.redact])];
    const key = JSON.stringify(values);
    return this.#find(key) ?? this.#keep(key, await this.#compileOnce(spec.caller + key, values, share));
  }

  clear(): void {
    for (const key of [...this.#kept.keys()]) this.#drop(key);
  }

  #find(key: string): Masking | null {
    const kept = this.#kept.get(key);
    if (kept === undefined) return null;
    kept.expiry.refresh();
    // Moves the entry to the end, as the last one used.
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    return kept.masking;
  }

  /** WHY once per caller: otherwise one caller would wait for the turns of another. */
  #compileOnce(name: string, values: readonly string[], share: TurnShare): Promise<Masking> {
    const running = this.#compiling.get(name);
    if (running !== undefined) return running;
    const compiled = compile(values, share).finally(() => this.#compiling.delete(name));
    this.#compiling.set(name, compiled);
    return compiled;
  }

  #keep(key: string, masking: Masking): Masking {
    const known = this.#find(key);
    if (known !== null) return known;
    this.#kept.set(key, { masking, expiry: setTimeout(() => this.#drop(key), IDLE_MS).unref() });
    let states = this.#kept.values().reduce((sum, kept) => sum + kept.masking.states, 0);
    for (const [oldest, kept] of [...this.#kept].slice(0, -1)) {
      if (this.#kept.size <= MAX_KEPT && states <= MAX_KEPT_STATES) break;
      states -= kept.masking.states;
      this.#drop(oldest);
    }
    return masking;
  }

  #drop(key: string): void {
    clearTimeout(this.#kept.get(key)?.expiry);
    this.#kept.delete(key);
  }
}

async function compile(values: readonly string[], share: TurnShare): Promise<Masking> {
  const pieces = compileMasking(values.map((value) => ['value', new Secret(value)] as const));
  for (;;) {
    await share.next();
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}
