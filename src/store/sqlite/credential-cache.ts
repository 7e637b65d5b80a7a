/**
 * Credentials that were retrieved lately, with their newest values as they lie in the database: sealed. A turn that names one
 * needs no look. What this process writes is dropped here first; what another one writes empties it all.
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
/** Of those that come while there is room: what is asked for again and again is kept soon. */
const ADMISSION_RATE = 0.25;
/** Of those that come when it is full and nobody has asked for what is kept. */
const LEAST_KEPT_SHARE = 1 / 64;
/** A hit counts so much in the share of hits. */
const HIT_WEIGHT = 1 / 1024;
const MAX_BYTES = 8 * 1024 * 1024;
/** A larger one would push out a hundred others. */
const MAX_ENTRY_BYTES = MAX_BYTES / 100;
/** About what an entry holds beside its value. */
const ENTRY_BYTES = 400;

export class CredentialCache {
  readonly #byPath = new FifoCache<CredentialPath, HotCredential>();
  readonly #pathById = new Map<CredentialId, CredentialPath>();
  /** Changes with every commit of another connection. SOURCE: sqlite.org/pragma.html#pragma_data_version */
  readonly #dataVersion: StatementSync;
  #seenVersion: unknown = null;
  #bytes = 0;
  /** Of late, about. */
  #hitShare = 0;
  #isFull = false;

  constructor(database: DatabaseSync) {
    this.#dataVersion = database.prepare('PRAGMA data_version');
  }

  /** To be called before a turn looks. */
  refresh(): void {
    const version = this.#dataVersion.get()?.['data_version'];
    if (version !== this.#seenVersion) this.#clear();
    this.#seenVersion = version;
  }

  get(path: CredentialPath): HotCredential | null {
    const hot = this.#byPath.get(path) ?? null;
    this.#hitShare += ((hot === null ? 0 : 1) - this.#hitShare) * HIT_WEIGHT;
    return hot;
  }

  /**
   * Keeps a share of what comes: when it is full, the less the fewer hits there are. WHY: where a million are asked for at random,
   * keeping what nobody asks for again costs more than the look.
   */
  maybeAdmit(path: CredentialPath, hot: HotCredential): void {
    const share = this.#isFull ? Math.max(LEAST_KEPT_SHARE, ADMISSION_RATE * this.#hitShare) : ADMISSION_RATE;
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
    // It comes back if it is asked for.
    this.#dropped(this.#byPath.evictOldest());
  }

  /** Before the batch is written: what it changes is looked for anew. */
  invalidate({ changes }: WriteSet): void {
    for (const change of changes) {
      if (change.kind === 'putCredential') this.#drop(change.credential.path);
      else if (change.kind === 'removeCredential') this.#drop(change.path);
      else if (change.kind === 'addVersion' || change.kind === 'dropVersions') {
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
