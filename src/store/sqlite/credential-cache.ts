/**
 * Recently retrieved credentials, with their newest values as stored (encrypted), to save queries. A write of this
 * process drops its entries before the commit; a write of another process clears the cache.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Credential, CredentialVersion } from '../../core/credential.ts';
import { FifoCache } from '../../core/fifo-cache.ts';
import type { CredentialId } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { Authenticated, WriteSet } from '../store.ts';
import type { CountRowId } from './access-counts.ts';

export interface HotCredential {
  readonly credential: Authenticated<Credential>;
  readonly countId: CountRowId;
  readonly newest: CredentialVersion | null;
}

const MAX_CREDENTIALS = 20_000;
/** Admission probability while the cache has room; frequent entries are admitted soon anyway. */
const ADMISSION_RATE = 0.25;
/** Admission probability of a full cache without hits. */
const MIN_ADMISSION_RATE = 1 / 64;
/** Weight of one lookup in the moving average of the hit rate. */
const HIT_WEIGHT = 1 / 1024;
const MAX_BYTES = 8 * 1024 * 1024;
/** A larger one would evict a hundred others. */
const MAX_ENTRY_BYTES = MAX_BYTES / 100;
/** Approximate size of an entry without its value. */
const ENTRY_BYTES = 400;

export class CredentialCache {
  readonly #byPath = new FifoCache<CredentialPath, HotCredential>();
  readonly #pathById = new Map<CredentialId, CredentialPath>();
  /** Changes with every commit of another connection. SOURCE: sqlite.org/pragma.html#pragma_data_version */
  readonly #dataVersion: StatementSync;
  #seenVersion: unknown = null;
  #bytes = 0;
  /** Moving average. */
  #hitRate = 0;
  #isFull = false;

  constructor(database: DatabaseSync) {
    this.#dataVersion = database.prepare('PRAGMA data_version');
  }

  /** Call before the lookups of a transaction. */
  refresh(): void {
    const version = this.#dataVersion.get()?.['data_version'];
    if (version !== this.#seenVersion) this.#clear();
    this.#seenVersion = version;
  }

  get(path: CredentialPath): HotCredential | null {
    const hot = this.#byPath.get(path) ?? null;
    this.#hitRate += ((hot === null ? 0 : 1) - this.#hitRate) * HIT_WEIGHT;
    return hot;
  }

  /**
   * Admits a random share; a full cache admits less when its hit rate is low. WHY: for random access to a million
   * credentials, caching costs more than the query that it saves.
   */
  maybeAdmit(path: CredentialPath, hot: HotCredential): void {
    const share = this.#isFull ? Math.max(MIN_ADMISSION_RATE, ADMISSION_RATE * this.#hitRate) : ADMISSION_RATE;
    if (Math.random() < share) this.put(path, hot);
  }

  put(path: CredentialPath, hot: HotCredential): void {
    const bytes = sizeOf(hot);
    if (bytes > MAX_ENTRY_BYTES) return;
    this.#drop(path);
    this.#bytes += bytes;
    this.#byPath.put(path, hot);
    this.#pathById.set(hot.credential.id, path);
    if (this.#byPath.size <= MAX_CREDENTIALS && this.#bytes <= MAX_BYTES) return;
    this.#isFull = true;
    this.#dropped(this.#byPath.evictOldest());
  }

  /** Call before the batch is written: drops what it changes. */
  invalidate({ changes }: WriteSet): void {
    for (const change of changes) {
      if (change.kind === 'putCredential') this.#drop(change.credential.path);
      else if (change.kind === 'removeCredential') this.#drop(change.path);
      else if (change.kind === 'addVersion' || change.kind === 'pruneVersions') {
        const path = this.#pathById.get(change.credentialId);
        if (path !== undefined) this.#drop(path);
      }
    }
  }

  #drop(path: CredentialPath): void {
    this.#dropped(this.#byPath.delete(path));
  }

  #dropped(hot: HotCredential | undefined): void {
    if (hot === undefined) return;
    this.#pathById.delete(hot.credential.id);
    this.#bytes -= sizeOf(hot);
  }

  #clear(): void {
    this.#byPath.clear();
    this.#pathById.clear();
    this.#bytes = 0;
    this.#isFull = false;
  }
}

function sizeOf({ newest }: HotCredential): number {
  return ENTRY_BYTES + (newest?.content instanceof Uint8Array ? newest.content.length : 0);
}
