/** Calls on credentials. SOURCE: interface 4.1; decisions, "Credentials". */
import { Secret } from '../core/secret.ts';
import type { LeaseCache } from './cache.ts';
import type { CallOptions, Connection } from './connection.ts';
import { End } from './ends.ts';
import type {
  CredentialMetadata,
  CredentialsFilter,
  ListedCredential,
  Page,
  Retrieved,
  RetrievedText,
  StoredCredential,
  StoreRequest,
} from './types.ts';

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

/** Each segment by itself: a slash parts segments. */
function credentialAddress(path: string): string {
  return `${CREDENTIALS}/${path.split('/').map(encodeURIComponent).join('/')}`;
}

export class Credentials {
  readonly #connection: Connection;
  readonly #cache: LeaseCache;

  constructor(connection: Connection, cache: LeaseCache) {
    this.#connection = connection;
    this.#cache = cache;
  }

  /** Lends the value. @throws LeaseholdError ACCESS_DENIED, NOT_FOUND, … */
  async retrieve(path: string, options: RetrieveOptions = {}): Promise<Retrieved> {
    const { version, ttlSeconds: ttl, useCache = true, signal } = options;
    const key = `${version ?? 'newest'} ${ttl ?? 'longest'} ${path}`;
    const held = useCache ? this.#cache.get(key) : null;
    if (held !== null) return held;
    const { data, asked, headers } = await this.#connection.ask<RetrievedText>({
      method: 'GET',
      path: credentialAddress(path),
      query: { version, ttl },
      // WHY: an answer that got lost left a lease that ends by itself.
      repeats: 'freely',
      signal,
    });
    const { value, ...others } = data;
    const retrieved: Retrieved = { ...others, value: new Secret(value) };
    this.#cache.put(key, retrieved, new End(others.expires_at, asked, headers.get('date')));
    return retrieved;
  }

  /** A new credential, or a new version of one. */
  async store({ value, ...others }: StoreRequest, options: StoreOptions = {}): Promise<StoredCredential> {
    const { onlyIfNew = false, signal } = options;
    const { data } = await this.#connection.ask<StoredCredential>({
      method: 'POST',
      path: CREDENTIALS,
      body: { ...others, value: value instanceof Secret ? value.reveal() : value },
      headers: onlyIfNew ? { 'if-none-match': '*' } : {},
      repeats: 'by key',
      signal,
    });
    this.#cache.forget({ path: others.path });
    return data;
  }

  /** The list entry and its versions: no value, no lease. */
  readMetadata(path: string, options: CallOptions = {}): Promise<CredentialMetadata> {
    return this.#connection.read(credentialAddress(path), { view: 'metadata' }, options);
  }

  list(filter: CredentialsFilter = {}, options: CallOptions = {}): Promise<Page<ListedCredential>> {
    return this.#connection.page(CREDENTIALS, filter, options);
  }

  /** All that there are, page by page. */
  listAll(filter: Omit<CredentialsFilter, 'limit' | 'offset'> = {}, options: CallOptions = {}) {
    return this.#connection.pages<ListedCredential>(CREDENTIALS, filter, options);
  }

  /** With all versions; its leases end. */
  async delete(path: string, options: CallOptions = {}): Promise<void> {
    this.#cache.forget({ path });
    await this.#connection.remove(credentialAddress(path), options);
  }

  /** Asks the service again for whatever is wanted next. */
  forgetCached(): void {
    this.#cache.forget();
  }
}
