/**
 * Re-encrypts earlier values after a rotation of the data key, in the background, and removes a data key under which no
 * value is left. A pass reads all versions in the order of their keys; after a crash the next start begins another one,
 * which skips what was done. Also makes a new data key before the current one has encrypted too many values.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Operation } from '../../core/operation.ts';
import { newKey } from '../../crypto/keyset-encryption.ts';
import type { VaultKeys } from '../../crypto/vault-keys.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import {
  type EncryptedVersion,
  FIRST_VERSION,
  listVersionsToReencrypt,
  type VersionCursor,
} from '../../store/encrypted-values.ts';
import type { Store } from '../../store/port.ts';
import { readEncryptionCounts } from '../../store/vault-metadata.ts';
import { Secret } from '../credentials/credential.ts';
import { replaceUsedDataKey, retireDataKey } from './key-operations.ts';

/** Far below the limit of 2^32, because nodes count on their own between two checks. */
const MAX_ENCRYPTIONS = 2 ** 30;
const CHECK_INTERVAL_MS = 60_000;
/** Rows read and values re-encrypted in a step. With eight times as many, the p99 of retrievals doubled. */
const STEP_ROWS = 8;
const MAX_STEP_BYTES = 1024 * 1024;
/** How much longer than it worked a step waits, so that callers keep most of the time. */
const PAUSE_FACTOR = 3;

export interface ReencryptionParts {
  readonly ledger: Pick<Ledger, 'submit'>;
  readonly store: Pick<Store, 'run' | 'dialect'>;
  readonly keys: VaultKeys;
  readonly onFailure: (error: unknown) => void;
  readonly maxEncryptions?: number;
  readonly intervalMs?: number;
}

export class Reencryption {
  readonly #parts: ReencryptionParts;
  readonly #stopping = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;
  #isDue = false;
  /** The keys of a complete pass that could remove none: it is repeated only after a rotation or a start. */
  #stuck = '';

  constructor(parts: ReencryptionParts) {
    this.#parts = parts;
    this.#timer = setInterval(() => {
      if (this.#stuck !== parts.keys.dataKeyIds.join()) this.begin();
    }, parts.intervalMs ?? CHECK_INTERVAL_MS).unref();
  }

  /** Begins a pass, or another one after that which runs. */
  begin(): void {
    this.#isDue = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
      if (this.#isDue && !this.#stopping.signal.aborted) this.begin();
    });
  }

  /** Resolves when no pass runs. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#running;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    this.#isDue = false;
    try {
      await this.#replaceUsedKey();
      const { keys } = this.#parts;
      const former = keys.dataKeyIds.slice(0, -1);
      if (former.length === 0) return;
      const current = keys.dataKeyIds.at(-1);
      // Values that do not authenticate are left, and so is their key.
      const left = await this.#pass();
      if (this.#stopping.signal.aborted || current !== keys.dataKeyIds.at(-1)) return;
      for (const id of former) if (!left.has(id)) await this.#parts.ledger.submit(retireDataKey(id));
      this.#stuck = keys.dataKeyIds.join();
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#parts.onFailure(error);
    }
  }

  async #replaceUsedKey(): Promise<void> {
    const { ledger, store, keys, maxEncryptions = MAX_ENCRYPTIONS } = this.#parts;
    const encryptions = (await store.run(readEncryptionCounts())).get(keys.dataKeyIds.at(-1) ?? '') ?? 0;
    if (encryptions >= maxEncryptions) await ledger.submit(replaceUsedDataKey(new Secret(newKey())));
  }

  /** Re-encrypts the values under previous keys. Resolves to the ids of keys under which a value is left. */
  async #pass(): Promise<ReadonlySet<string>> {
    const { ledger, store, keys } = this.#parts;
    const left = new Set<string>();
    let cursor: VersionCursor | null = FIRST_VERSION;
    let isLastPass = false;
    let hasReencrypted = false;
    while (!this.#stopping.signal.aborted) {
      if (cursor === null) {
        // ORDER: a second pass proves that no value is left, and finds those that do not authenticate.
        if (isLastPass || !hasReencrypted) break;
        isLastPass = true;
        cursor = FIRST_VERSION;
      }
      const startedAt = performance.now();
      const { rows, next }: { rows: readonly EncryptedVersion[]; next: VersionCursor | null } = await store.run(
        listVersionsToReencrypt(store.dialect, keys.dataKeyIds.at(-1) ?? '', cursor, STEP_ROWS),
      );
      if (isLastPass) for (const { content } of rows) left.add(Buffer.from(content.subarray(1, 5)).toString('hex'));
      for (const part of isLastPass ? [] : bySize(rows)) {
        hasReencrypted = true;
        await ledger.submit(reencryptOperation(part));
      }
      cursor = next;
      const pauseMs = rows.length === 0 ? 0 : (performance.now() - startedAt) * PAUSE_FACTOR;
      await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
    return left;
  }
}

/** Parts of at most `MAX_STEP_BYTES`, so that a batch stays short. */
function bySize(rows: readonly EncryptedVersion[]): EncryptedVersion[][] {
  const parts: EncryptedVersion[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    if (bytes + row.content.length > MAX_STEP_BYTES) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)?.push(row);
    bytes += row.content.length;
  }
  return parts;
}

/** Not recorded: no value changes. */
function reencryptOperation(rows: readonly EncryptedVersion[]): Operation<null> {
  const changes = rows.map(({ bound, content }) => ({ kind: 'reencrypt' as const, bound, content }));
  return {
    reads: {},
    auth: { kind: 'service' },
    decide: () => ({ response: { reply: null }, entry: null, changes }),
  };
}
