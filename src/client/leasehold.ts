/**
 * The library for agents and people: `import { Leasehold } from 'leasehold/client'`. Nothing is asked before the first call. It needs
 * nothing but what Node, Bun, Deno and browsers have.
 */
import { Secret } from '../core/secret.ts';
import { parseAddress } from './address.ts';
import { AgentAuth } from './agent-auth.ts';
import { Agents } from './agents.ts';
import { ApiClient, type CallOptions } from './api-client.ts';
import { Audit } from './audit.ts';
import { ANONYMOUS, type AuthProvider, tokenCaller } from './auth-provider.ts';
import { LeaseCache } from './cache.ts';
import { Credentials } from './credentials.ts';
import { decodeHealth, decodeSession } from './decoders.ts';
import { badOption, LeaseholdError } from './errors.ts';
import { Leases } from './leases.ts';
import { caFetch } from './node-fetch.ts';
import { Policies } from './policies.ts';
import type { Signer } from './signers.ts';
import { Transport } from './transport.ts';
import type { Health, Session } from './types.ts';

export interface LeaseholdOptions {
  /** Such as `https://vault.example.org` or `http://127.0.0.1:7700`. */
  readonly address: string;
  /** A token, or an agent that logs in; neither: for what needs no token. */
  readonly token?: string | Secret;
  readonly agent?: { readonly name: string; readonly sign: Signer };
  /** Of each try; 30 seconds where it is left out. */
  readonly timeoutMs?: number;
  /** Beside the first, and only where nothing can be done twice; 3 where it is left out. */
  readonly retries?: number;
  /** How many values are kept in memory for as long as their leases last; 0, none, where it is left out. */
  readonly cache?: number;
  /** Plain HTTP to another machine. */
  readonly insecureHttp?: boolean;
  /** Certificates in PEM: only these authorities are trusted. In Node, Bun and Deno. */
  readonly ca?: string;
  readonly fetch?: typeof fetch;
}

export class Leasehold {
  readonly address: string;
  readonly credentials: Credentials;
  readonly policies: Policies;
  readonly agents: Agents;
  readonly leases: Leases;
  readonly audit: Audit;
  readonly #transport: Transport;
  readonly #api: ApiClient;
  readonly #agent: AgentAuth | null;

  /** @throws LeaseholdError BAD_OPTIONS */
  constructor(options: LeaseholdOptions) {
    const { token, agent, timeoutMs = 30_000, retries = 3, cache = 0, insecureHttp = false } = options;
    if (token !== undefined && agent !== undefined)
      throw new LeaseholdError('BAD_OPTIONS', 'give token or agent, not both');
    checkNumber('timeoutMs', timeoutMs, 1);
    checkNumber('retries', retries, 0);
    checkNumber('cache', cache, 0);
    this.address = parseAddress(options.address, insecureHttp);
    this.#transport = new Transport({ base: this.address, fetch: fetchOf(options), timeoutMs, retries });
    this.#agent = agent === undefined ? null : new AgentAuth(this.#transport, agent.name, agent.sign);
    const caller: AuthProvider = this.#agent ?? (token === undefined ? ANONYMOUS : tokenCaller(token));
    const leases = new LeaseCache(cache);
    this.#api = new ApiClient(this.#transport, caller);
    this.credentials = new Credentials(this.#api, leases);
    this.policies = new Policies(this.#api);
    this.agents = new Agents(this.#api);
    this.leases = new Leases(this.#api, leases);
    this.audit = new Audit(this.#api);
  }

  /** Needs no token; tries once. @throws LeaseholdError also for a service that says it is not well */
  async health({ signal }: CallOptions = {}): Promise<Health> {
    return (await this.#askHealth(signal)).data;
  }

  /** How far this machine's clock is ahead of the service's, in milliseconds: to the second, which is all that an answer tells. */
  async clockDifference({ signal }: CallOptions = {}): Promise<number> {
    const { headers, sentAt } = await this.#askHealth(signal);
    return sentAt.wallMs - Date.parse(headers.get('date') ?? '');
  }

  #askHealth(signal: AbortSignal | undefined) {
    const spec = { method: 'GET', path: '/api/v1/health', retry: 'never', signal } as const;
    return this.#api.ask(spec, decodeHealth);
  }

  /** The agent's session: begun now where there is none. */
  async logIn({ signal }: CallOptions = {}): Promise<Session> {
    if (this.#agent === null) throw new LeaseholdError('BAD_OPTIONS', 'only an agent can log in');
    return this.#agent.session(signal ?? new AbortController().signal);
  }

  /** The session of the token that is used, as the service knows it. */
  async readSession(options: CallOptions = {}): Promise<Session> {
    const { session_id, ...others } = await this.#api.read('/auth/session', {}, decodeSession, options);
    return { ...others, session_id: new Secret(session_id) };
  }

  /** Ends the session, if there is one, and never begins one for it; values in the cache are forgotten. */
  async logOut({ signal }: CallOptions = {}): Promise<void> {
    this.credentials.forgetCached();
    const session = this.#agent === null ? null : await this.#agent.current();
    if (this.#agent !== null && session === null) return;
    const caller = session === null ? this.#api.caller : tokenCaller(session.session_id);
    try {
      await this.#transport.remove({ method: 'DELETE', path: '/auth/session', retry: 'always', signal }, caller);
    } catch (error) {
      // It has ended already.
      if (!(error instanceof LeaseholdError) || error.status !== 401) throw error;
    }
    if (session !== null) this.#agent?.invalidate(session.session_id.reveal());
  }
}

/** @throws LeaseholdError BAD_OPTIONS */
function fetchOf({ address, ca, fetch: given }: LeaseholdOptions): typeof fetch {
  if (ca === undefined) return given ?? fetch;
  if (given !== undefined) throw new LeaseholdError('BAD_OPTIONS', 'give ca or fetch, not both');
  if (!/^https:/i.test(address)) throw badOption('ca', 'is of use with https:// only');
  return caFetch(ca);
}

/** More than a timer takes would fire at once. */
const LARGEST = 2 ** 31 - 1;

function checkNumber(name: string, value: number, least: number): void {
  if (Number.isInteger(value) && value >= least && value <= LARGEST) return;
  throw badOption(name, `must be a whole number from ${least} to ${LARGEST}`);
}

export type { CallOptions, ListAllOptions } from './api-client.ts';
export type { RetrieveOptions, Stored, StoreOptions } from './credentials.ts';
export { type ClientCode, type ErrorCode, LeaseholdError } from './errors.ts';
export { fileSigner, keySigner, type Signer } from './signers.ts';
export type * from './types.ts';
export { Secret };
