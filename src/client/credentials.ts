/** Calls on credentials. SOURCE: docs/api.md, "Credentials"; docs/decisions.md, "Credentials". */
import { Secret } from '../vault/credentials/credential.ts';
import {
  type ApiClient,
  type CallOptions,
  Calls,
  type ListAllOptions,
  type ReplaceOptions,
  type Tagged,
  toSegments,
} from './api-client.ts';
import type { LeaseCache } from './cache.ts';
import { type ClockReading, Expiry } from './expiry.ts';
import { leaseAddress } from './leases.ts';
import { MAX_VALUE_BYTES } from './read-response.ts';
import type {
  CredentialMetadata,
  CredentialsFilter,
  Lease,
  ListedCredential,
  Page,
  Retrieved,
  RetrievedWire,
  StoredCredential,
  StoreRequest,
} from './types.ts';

const CREDENTIALS = '/api/v1/credentials';

export interface RetrieveOptions extends CallOptions {
  /** The version to retrieve; the newest by default. */
  readonly version?: number;
  readonly ttlSeconds?: number;
  /** False sends a request even if the cache has a valid lease. */
  readonly useCache?: boolean;
}

export interface StoreOptions extends CallOptions {
  /** Fails with ALREADY_EXISTS if the credential exists. */
  readonly onlyIfNew?: boolean;
}

export interface Stored extends StoredCredential {
  /** Version of the stored value; null if the server does not return it. */
  readonly version: number | null;
}

const addressOf = (path: string): string => `${CREDENTIALS}/${toSegments(path)}`;

export class Credentials extends Calls {
  readonly #cache: LeaseCache;

  constructor(api: ApiClient, cache: LeaseCache) {
    super(api);
    this.#cache = cache;
  }

  /** Issues a lease and returns it with the value. @throws LeaseholdError ACCESS_DENIED, NOT_FOUND, … */
  async retrieve(path: string, options: RetrieveOptions = {}): Promise<Retrieved> {
    const { version, ttlSeconds: ttl, useCache = true, signal } = options;
    const key = `${version ?? 'newest'} ${ttl ?? 'longest'} ${path}`;
    const cached = useCache ? this.#cache.get(key) : null;
    if (cached !== null) return cached;
    const { invalidations } = this.#cache;
    const spec = {
      method: 'GET',
      path: addressOf(path),
      query: { version, ttl },
      // WHY: a lost response leaves a lease that expires on schedule.
      retry: 'always',
      signal,
      maxBytes: MAX_VALUE_BYTES,
    } as const;
    const { data, sentAt } = await this.api.ask<RetrievedWire>(spec);
    const { value, ...others } = data;
    const retrieved: Retrieved = { ...others, value: new Secret(value) };
    const expiry = this.#cache.isOn ? await this.#readExpiry(others.lease_id, sentAt, signal) : null;
    if (expiry !== null && invalidations === this.#cache.invalidations) this.#cache.put(key, retrieved, expiry);
    return retrieved;
  }

  /**
   * Reads the lease, whose issue and expiry times come from the same clock. Returns null on failure or if the lease is
   * not active. The value is then not cached.
   */
  async #readExpiry(leaseId: string, sentAt: ClockReading, signal: AbortSignal | undefined): Promise<Expiry | null> {
    const spec = { method: 'GET', path: leaseAddress(leaseId), retry: 'never', signal } as const;
    try {
      const { issued_at, expires_at, status } = (await this.api.ask<Lease>(spec)).data;
      return status === 'active' ? new Expiry(sentAt, Date.parse(expires_at) - Date.parse(issued_at)) : null;
    } catch {
      return null;
    }
  }

  async store({ value, ...others }: StoreRequest, options: StoreOptions = {}): Promise<Stored> {
    const { onlyIfNew = false, signal } = options;
    const spec = {
      method: 'POST',
      path: CREDENTIALS,
      body: { ...others, value: value instanceof Secret ? value.reveal() : value },
      headers: onlyIfNew ? { 'if-none-match': '*' } : {},
      retry: 'idempotency-key',
      signal,
    } as const;
    const storing = this.api.ask<StoredCredential>(spec);
    const { data, headers } = await this.#cache.invalidateAfter({ path: others.path }, storing);
    return { ...data, version: Number(headers.get('leasehold-version')) || null };
  }

  async readMetadata(path: string, options: CallOptions = {}): Promise<CredentialMetadata> {
    return this.api.read(addressOf(path), { view: 'metadata' }, options);
  }

  async readMetadataTagged(path: string, options: CallOptions = {}): Promise<Tagged<CredentialMetadata>> {
    return this.api.readTagged(addressOf(path), options, { view: 'metadata' });
  }

  list(filter: CredentialsFilter = {}, options: CallOptions = {}): Promise<Page<ListedCredential>> {
    return this.api.page(CREDENTIALS, filter, options);
  }

  listAll(filter: Omit<CredentialsFilter, 'limit' | 'offset'> = {}, options: ListAllOptions = {}) {
    return this.api.pages<ListedCredential>(CREDENTIALS, filter, options);
  }

  /** Deletes all versions and revokes their leases. */
  async delete(path: string, options: ReplaceOptions = {}): Promise<void> {
    await this.#cache.invalidateAfter({ path }, this.api.remove(addressOf(path), options, 'name'));
  }

  forgetCached(): void {
    this.#cache.forget();
  }
}
