/**
 * Recently retrieved credentials, with their newest values as stored (encrypted), to save queries. A write of this
 * process drops its entries before the commit; a write of another process clears the cache.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { LRUCache } from 'lru-cache';
import type { CredentialId } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { Credential, CredentialVersion } from '../../vault/credentials/credential.ts';
import type { Authenticated, WriteSet } from '../stored-data.ts';
import type { CountRowId } from './access-counts.ts';

export interface CachedCredential {
  readonly credential: Authenticated<Credential>;
  readonly countId: CountRowId;
  readonly newest: CredentialVersion | null;
}

/** A credential with what the newest entry about it records; null if none does. */
export interface RecordedCredential extends CachedCredential {
  readonly subject: string;
  readonly state: string | null;
}

const MAX_BYTES = 8 * 1024 * 1024;
/** A larger one would evict a hundred others. */
const MAX_ENTRY_BYTES = 80 * 1024;
/** Approximate size of an entry without its value. */
const ENTRY_BYTES = 400;
/** WHY not all: with random access to a million credentials, admission costs more than it saves. */
const ADMISSION_RATE = 0.25;

export class CredentialCache {
  /** WHY `maxSize` without `max`: see ledger/token-buckets.ts. */
  readonly #byPath = new LRUCache<CredentialPath, RecordedCredential>({
    maxSize: MAX_BYTES,
    maxEntrySize: MAX_ENTRY_BYTES,
    sizeCalculation: ({ newest }) => ENTRY_BYTES + (newest?.content instanceof Uint8Array ? newest.content.length : 0),
  });
  /** Changes with every commit of another connection. SOURCE: sqlite.org/pragma.html#pragma_data_version */
  readonly #dataVersion: StatementSync;
  #seenVersion: unknown = null;

  constructor(database: DatabaseSync) {
    this.#dataVersion = database.prepare('PRAGMA data_version');
  }

  /** Call before the lookups of a transaction. */
  refresh(): void {
    const version = this.#dataVersion.get()?.['data_version'];
    if (version !== this.#seenVersion) this.#byPath.clear();
    this.#seenVersion = version;
  }

  get(path: CredentialPath): RecordedCredential | null {
    return this.#byPath.get(path) ?? null;
  }

  /** Frequent credentials are admitted soon. */
  maybeAdmit(path: CredentialPath, credential: RecordedCredential): void {
    if (Math.random() < ADMISSION_RATE) this.put(path, credential);
  }

  put(path: CredentialPath, credential: RecordedCredential): void {
    this.#byPath.set(path, credential);
  }

  /** Call before the batch is written: drops what it changes. */
  invalidate({ changes }: WriteSet): void {
    const dropped = new Set<CredentialId>();
    for (const change of changes) {
      if (change.kind === 'put' || change.kind === 'remove') {
        if (change.resource !== 'credential') continue;
        this.#byPath.delete(change.row.path);
        if (change.kind === 'put') dropped.add(change.row.id);
      } else if (change.kind === 'reencrypt') this.#byPath.delete(change.path);
      // The ledger changes versions only together with their credential.
      else if (change.kind === 'addVersion' || change.kind === 'pruneVersions') {
        if (!dropped.has(change.credentialId)) this.#byPath.clear();
      }
    }
  }
}
