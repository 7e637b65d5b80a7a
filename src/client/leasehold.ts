/**
 * The client library: `import { Leasehold } from 'leasehold/client'`. It has no dependencies and runs in Node, Bun,
 * Deno and browsers. It sends nothing before the first call.
 */
import { Secret } from '../vault/credentials/credential.ts';
import { ApiClient, type CallOptions } from './api-client.ts';
import { Approvals } from './approvals.ts';
import { Audit } from './audit.ts';
import { AgentAuth, ANONYMOUS, tokenCaller } from './authentication.ts';
import { LeaseCache } from './cache.ts';
import { Credentials } from './credentials.ts';
import { badOption, LeaseholdError } from './errors.ts';
import { ExposureCalls } from './exposure.ts';
import { Keys } from './keys.ts';
import { Leases } from './leases.ts';
import { Agents, Operators, Policies } from './named-resources.ts';
import { caFetch, safeFetch } from './node-fetch.ts';
import { Overview } from './overview.ts';
import { parseServerUrl } from './server-url.ts';
import { SignIn } from './sign-in.ts';
import type { Signer } from './signers.ts';
import { type AuthProvider, Transport } from './transport.ts';
import type {
  AgentSession,
  CallerSession,
  CatalogueService,
  CurrentSessionWire,
  Health,
  UseRequest,
  UseResponse,
} from './types.ts';
import { fetchUpstream, Targets, toBaseUrl, USE_TIMEOUT_MS, type UseFetchInit, UseLeases, use } from './use.ts';

export interface LeaseholdOptions {
  /** The server's URL, such as `https://vault.example.org` or `http://127.0.0.1:7700`. */
  readonly address: string;
  /** A token, or an agent that logs in; neither for calls that need no authentication. */
  readonly token?: string | Secret;
  readonly agent?: { readonly name: string; readonly sign: Signer };
  /** Authenticates each call, instead of `token` and `agent`. */
  readonly caller?: AuthProvider;
  /** The time-out of each try. By default 30 seconds, and 660 for a brokered request, whose upstream may be slow. */
  readonly timeoutMs?: number;
  /** Further tries, only of calls that can be repeated safely; 3 by default. */
  readonly retries?: number;
  /** Further tries, of half a minute each, of a call that waits for an approval; `retries` by default. */
  readonly approvalRetries?: number;
  /** Called after each try of a call that waits for an approval. */
  readonly onApprovalPending?: (approvalId: string) => void;
  /** Number of values that are cached until their leases expire; 0 (off) by default. */
  readonly cache?: number;
  readonly insecureHttp?: boolean;
  /** Certificates of authorities in PEM; no others are then trusted. Supported in Node, Bun and Deno. */
  readonly ca?: string;
  /** Sends the requests. By default, requests to this machine or over plain HTTP use no proxy. */
  readonly fetch?: typeof fetch;
}

/** The headers arrive once the snapshot is taken, which takes long for a large vault. */
const SNAPSHOT_TIMEOUT_MS = 600_000;

export class Leasehold {
  readonly address: string;
  readonly credentials: Credentials;
  readonly policies: Policies;
  readonly agents: Agents;
  readonly operators: Operators;
  readonly overview: Overview;
  readonly signIn: SignIn;
  readonly keys: Keys;
  readonly leases: Leases;
  readonly exposure: ExposureCalls;
  readonly audit: Audit;
  readonly approvals: Approvals;
  readonly targets: Targets;
  readonly useLeases: UseLeases;
  readonly #session: string;
  readonly #useTimeoutMs: number;
  readonly #transport: Transport;
  readonly #api: ApiClient;
  readonly #agent: AgentAuth | null;

  /** @throws LeaseholdError BAD_OPTIONS */
  constructor(options: LeaseholdOptions) {
    const { token, agent, timeoutMs = 30_000, retries = 3, cache = 0, insecureHttp = false } = options;
    if ([token, agent, options.caller].filter((given) => given !== undefined).length > 1)
      throw new LeaseholdError('BAD_OPTIONS', 'give only one of token, agent and caller');
    checkNumber('timeoutMs', timeoutMs, 1);
    checkNumber('retries', retries, 0);
    const { approvalRetries = retries, onApprovalPending } = options;
    checkNumber('approvalRetries', approvalRetries, 0);
    checkNumber('cache', cache, 0);
    this.address = parseServerUrl(options.address, insecureHttp);
    this.#transport = new Transport({
      base: this.address,
      fetch: fetchOf(options),
      timeoutMs,
      retries,
      approvalRetries,
      onApprovalPending,
    });
    this.#agent = agent === undefined ? null : new AgentAuth(this.#transport, agent.name, agent.sign);
    const given = options.caller ?? (token === undefined ? ANONYMOUS : tokenCaller(token));
    const caller: AuthProvider = this.#agent ?? given;
    // The cookie of a browser's session is sent below /api/v1 only.
    this.#session = caller.sessionPart === undefined ? '/auth/session' : '/api/v1/auth/session';
    const leases = new LeaseCache(cache);
    this.#api = new ApiClient(this.#transport, caller);
    this.credentials = new Credentials(this.#api, leases);
    this.policies = new Policies(this.#api);
    this.agents = new Agents(this.#api);
    this.operators = new Operators(this.#api);
    this.approvals = new Approvals(this.#api);
    this.overview = new Overview(this.#api);
    this.signIn = new SignIn(this.#api);
    this.keys = new Keys(this.#api);
    this.leases = new Leases(this.#api, leases);
    this.exposure = new ExposureCalls(this.#api, leases);
    this.audit = new Audit(this.#api);
    this.targets = new Targets(this.#api);
    this.useLeases = new UseLeases(this.#api);
    this.#useTimeoutMs = options.timeoutMs ?? USE_TIMEOUT_MS;
  }

  /** Needs no token and is not retried. @throws LeaseholdError if the server reports that it is not healthy */
  async health({ signal }: CallOptions = {}): Promise<Health> {
    return (await this.#askHealth(signal)).data;
  }

  /**
   * Milliseconds by which this machine's clock is ahead of the server's, with the Date header's resolution of one
   * second.
   */
  async clockDifference({ signal }: CallOptions = {}): Promise<number> {
    const { headers, sentAt } = await this.#askHealth(signal);
    return sentAt.wallMs - Date.parse(headers.get('date') ?? '');
  }

  services(options: CallOptions = {}): Promise<CatalogueService[]> {
    return this.#api.read<CatalogueService[]>('/api/v1/services', {}, options);
  }

  /**
   * All data of the vault as of one moment, as newline-delimited JSON; values stay encrypted. Only for the
   * administrator. A stream without its last record, `end`, is incomplete.
   */
  async backup({ signal }: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const timeoutMs = SNAPSHOT_TIMEOUT_MS;
    const spec = { method: 'POST', path: '/api/v1/backup', retry: 'never', signal, timeoutMs } as const;
    const { body, headers } = await this.#api.stream(spec);
    if (body !== null && headers.get('content-type')?.startsWith('application/x-ndjson') === true) return body;
    throw new LeaseholdError('INVALID_RESPONSE', 'the response is not a backup');
  }

  async #askHealth(signal: AbortSignal | undefined) {
    const spec = { method: 'GET', path: '/api/v1/health', retry: 'never', signal } as const;
    const answer = await this.#api.ask<Health>(spec);
    // WHY checked here: scripts use the exit code of `status` to tell whether the vault works.
    if (typeof answer.data.status !== 'string') {
      throw new LeaseholdError('INVALID_RESPONSE', 'the response is invalid: it has no status');
    }
    return answer;
  }

  /** Returns the agent's session; logs in when there is no session. */
  async logIn({ signal }: CallOptions = {}): Promise<AgentSession> {
    if (this.#agent === null) throw new LeaseholdError('BAD_OPTIONS', 'only an agent can log in');
    return this.#agent.session(signal ?? new AbortController().signal);
  }

  async readSession(options: CallOptions = {}): Promise<CallerSession> {
    return toCurrentSession(await this.#api.read<CurrentSessionWire>(this.#session, {}, options));
  }

  /** Extends the session of the token in use. Only for an operator. */
  async renewSession(options: CallOptions = {}): Promise<CallerSession> {
    return toCurrentSession(await this.#api.post(`${this.#session}/renew`, undefined, options, 'always'));
  }

  /**
   * Makes one request with a credential that the caller does not see. Any upstream status is returned, and not thrown.
   * @throws LeaseholdError ACCESS_DENIED, UPSTREAM_FAILED, …
   */
  use(request: UseRequest, options: CallOptions = {}): Promise<UseResponse> {
    return use(this.#api, this.#useTimeoutMs, request, options);
  }

  /** Works like `fetch`, with the credential at `path`. A body that the server truncated fails with TRUNCATED. */
  fetch(path: string, url: string | URL | Request, init: UseFetchInit = {}): Promise<Response> {
    return fetchUpstream((request, options) => this.use(request, options), path, url, init);
  }

  /**
   * The URL to give to an SDK in place of its service's origin. `target` is the number of one of the credential's
   * targets, from 1; by default the first one that a request matches. The SDK's API key is then a session's token.
   */
  baseURL(path: string, target?: number): string {
    return toBaseUrl(this.address, path, target ?? null);
  }

  /** Ends the session if one exists, and empties the cache. Does not log in. */
  async logOut({ signal }: CallOptions = {}): Promise<void> {
    this.credentials.forgetCached();
    const session = this.#agent === null ? null : await this.#agent.current();
    if (this.#agent !== null && session === null) return;
    const caller = session === null ? this.#api.caller : tokenCaller(session.session_id);
    try {
      await this.#transport.remove({ method: 'DELETE', path: this.#session, retry: 'always', signal }, caller);
    } catch (error) {
      // The session has already ended.
      if (!(error instanceof LeaseholdError) || error.status !== 401) throw error;
    }
    if (session !== null) this.#agent?.invalidate(session.session_id.reveal());
  }
}

function toCurrentSession({ session_id, ...others }: CurrentSessionWire): CallerSession {
  return { ...others, session_id: session_id === undefined ? null : new Secret(session_id) };
}

/** @throws LeaseholdError BAD_OPTIONS */
function fetchOf({ address, ca, fetch: given }: LeaseholdOptions): typeof fetch {
  if (ca === undefined) return given ?? safeFetch;
  if (given !== undefined) throw new LeaseholdError('BAD_OPTIONS', 'give ca or fetch, not both');
  if (!/^https:/i.test(address)) throw badOption('ca', 'requires an https:// address');
  return caFetch(ca);
}

/** A timer with a longer delay fires immediately. */
const MAX_OPTION = 2 ** 31 - 1;

function checkNumber(name: string, value: number, min: number): void {
  if (Number.isInteger(value) && value >= min && value <= MAX_OPTION) return;
  throw badOption(name, `must be an integer from ${min} to ${MAX_OPTION}`);
}

export type { CallOptions, ListAllOptions, PutOptions, ReplaceOptions, Tagged } from './api-client.ts';
export { groupApprovals } from './approvals.ts';
export type { RetrieveOptions, Stored, StoreOptions } from './credentials.ts';
export { type ClientCode, type ErrorCode, LeaseholdError } from './errors.ts';
export { fileSigner, keySigner, type Signer } from './signers.ts';
export type * from './types.ts';
export type { UseFetchInit } from './use.ts';
export { Secret };
