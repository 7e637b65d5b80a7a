/** Calls on credentials. SOURCE: interface 4.1; decisions, "Credentials". */
import { Secret } from '../core/secret.ts';
import type { ApiClient, CallOptions, ListAllOptions } from './api-client.ts';
import type { LeaseCache } from './cache.ts';
import { decodeLease, decodeListed, decodeMetadata, decodeRetrieved, decodeStored } from './decoders.ts';
import { type ClockReading, Expiry } from './expiry.ts';
import { leaseAddress } from './leases.ts';
import { MOST_VALUE_BYTES } from './responses.ts';
import type {
  CredentialMetadata,
  CredentialsFilter,
  ListedCredential,
  Page,
  Retrieved,
  StoredCredential,
  StoreRequest,
} from './types.ts';
import { toSegments } from './url-path.ts';

const CREDENTIALS = '/api/v1/credentials';

export interface RetrieveOptions extends CallOptions {
  /** An earlier one; the newest where it is left out. */
  readonly version?: number;
  /** A shorter lease than the policy allows. */
  readonly ttlSeconds?: number;
  /** False asks the service although a lease in the cache lasts. */
  readonly useCache?: boolean;
}

export interface StoreOptions extends CallOptions {
  /** Refuses with ALREADY_EXISTS where there is one. */
  readonly onlyIfNew?: boolean;
}

export interface Stored extends StoredCredential {
  /** Of the value that was stored; null where the service does not tell. */
  readonly version: number | null;
}

const addressOf = (path: string): string => `${CREDENTIALS}/${toSegments(path)}`;

export class Credentials {
  readonly #api: ApiClient;
  readonly #cache: LeaseCache;

  constructor(api: ApiClient, cache: LeaseCache) {
    this.#api = api;
    this.#cache = cache;
  }

  /** Lends the value. @throws LeaseholdError ACCESS_DENIED, NOT_FOUND, … */
  async retrieve(path: string, options: RetrieveOptions = {}): Promise<Retrieved> {
    const { version, ttlSeconds: ttl, useCache = true, signal } = options;
    const key = `${version ?? 'newest'} ${ttl ?? 'longest'} ${path}`;
    const held = useCache ? this.#cache.get(key) : null;
    if (held !== null) return held;
    const { invalidations } = this.#cache;
    const spec = {
      method: 'GET',
      path: addressOf(path),
      query: { version, ttl },
      // WHY: an answer that got lost left a lease that ends by itself.
      retry: 'always',
      signal,
      mostBytes: MOST_VALUE_BYTES,
    } as const;
    const { data, sentAt } = await this.#api.ask(spec, decodeRetrieved);
    const { value, ...others } = data;
    const retrieved: Retrieved = { ...others, value: new Secret(value) };
    const end = this.#cache.isOn ? await this.#endOf(others.lease_id, sentAt, signal) : null;
    if (end !== null && invalidations === this.#cache.invalidations) this.#cache.put(key, retrieved, end);
    return retrieved;
  }

  /**
   * ClockReading of the service, because only the lease has its beginning and its end by one clock. Null where that is not told: then the
   * value is not kept.
   */
  async #endOf(leaseId: string, sentAt: ClockReading, signal: AbortSignal | undefined): Promise<Expiry | null> {
    const spec = { method: 'GET', path: leaseAddress(leaseId), retry: 'never', signal } as const;
    try {
      const { issued_at, expires_at, status } = (await this.#api.ask(spec, decodeLease)).data;
      return status === 'active' ? new Expiry(sentAt, Date.parse(expires_at) - Date.parse(issued_at)) : null;
    } catch {
      return null;
    }
  }

  /** A new credential, or a new version of one. */
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
    const storing = this.#api.ask(spec, decodeStored);
    const { data, headers } = await this.#cache.invalidateAfter({ path: others.path }, storing);
    return { ...data, version: Number(headers.get('leasehold-version')) || null };
  }

  /** The list entry and its versions: no value, no lease. */
  async readMetadata(path: string, options: CallOptions = {}): Promise<CredentialMetadata> {
    return this.#api.read(addressOf(path), { view: 'metadata' }, decodeMetadata, options);
  }

  list(filter: CredentialsFilter = {}, options: CallOptions = {}): Promise<Page<ListedCredential>> {
    return this.#api.page(CREDENTIALS, filter, decodeListed, options);
  }

  /** All that there are, page by page. */
  listAll(filter: Omit<CredentialsFilter, 'limit' | 'offset'> = {}, options: ListAllOptions = {}) {
    return this.#api.pages(CREDENTIALS, filter, decodeListed, options);
  }

  /** With all versions; its leases end. */
  async delete(path: string, options: CallOptions = {}): Promise<void> {
    await this.#cache.invalidateAfter({ path }, this.#api.remove(addressOf(path), options, 'name'));
  }

  /** Asks the service again for whatever is wanted next. */
  forgetCached(): void {
    this.#cache.forget();
  }
}
