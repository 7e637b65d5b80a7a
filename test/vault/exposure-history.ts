/**
 * Histories of retrievals and uses, which are played on a vault and noted in the model. A history has separate agents
 * and paths, so that several are played at the same time.
 */

import type { AgentId, AgentName } from '../../src/core/names.ts';
import type { Context, Operation } from '../../src/core/operation.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import { newId } from '../../src/crypto/primitives.ts';
import { hashToken } from '../../src/crypto/tokens.ts';
import type { Agent } from '../../src/vault/agents/agent.ts';
import { deregisterAgent, registerAgent } from '../../src/vault/agents/agent-operations.ts';
import { serviceEvent } from '../../src/vault/audit/lifecycle.ts';
import { remove } from '../../src/vault/credentials/credential-operations.ts';
import { retrieveCredential } from '../../src/vault/credentials/credentials.ts';
import type { PanicResult } from '../../src/vault/exposure/exposure-record.ts';
import { panic } from '../../src/vault/exposure/panic.ts';
import { renewLease, revokeLease, revokeLeases } from '../../src/vault/leases/lease-operations.ts';
import type { TtlSeconds } from '../../src/vault/policies/policy.ts';
import { parseMethod, parseTargets } from '../../src/vault/use/target.ts';
import { putTargets } from '../../src/vault/use/target-operations.ts';
import { parseUrl } from '../../src/vault/use/upstream-url.ts';
import { issueUseLease } from '../../src/vault/use/use-lease-operations.ts';
import { endUse, startUse } from '../../src/vault/use/use-operations.ts';
import { decided } from '../kit/decided.ts';
import { newAgentKey } from './agents-fixture.ts';
import { type ActFilter, type Expected, ExposureModel, type HeldLease, rejected, type Step } from './exposure-model.ts';
import { admin, CONNECTED, type OpenedVault, put, toPath } from './fixture.ts';

const REQUEST = { method: parseMethod('GET'), url: parseUrl('https://upstream.example/v1') };
const TARGETS = parseTargets([{ origin: 'https://upstream.example' }]);
const SESSION_MS = 400 * 24 * 3_600_000;
const PATHS_EACH = 2;
const AGENTS_EACH = 2;

export class History {
  readonly paths: readonly CredentialPath[];
  readonly agents: readonly AgentName[];
  readonly #vault: OpenedVault;
  readonly #now: () => number;
  readonly #model: ExposureModel;
  readonly #withTargets = new Set<CredentialPath>();
  readonly #sessions = new Map<AgentName, Context>();
  readonly #registered = new Map<AgentName, Agent>();

  constructor(vault: OpenedVault, prefix: string, now: () => number) {
    this.#vault = vault;
    this.#now = now;
    this.#model = new ExposureModel(now);
    this.paths = Array.from({ length: PATHS_EACH }, (_, at) => toPath(`${prefix}/${at}`));
    this.agents = Array.from({ length: AGENTS_EACH }, (_, at) => `${prefix}-${at}` as AgentName);
  }

  async play(step: Step): Promise<PanicResult | null> {
    const path = 'path' in step ? this.#pathAt(step.path) : toPath('none');
    const agent = 'agent' in step ? this.#agentAt(step.agent) : ('none' as AgentName);
    const lease =
      'which' in step ? this.#model.active()[step.which % Math.max(1, this.#model.active().length)] : undefined;
    switch (step.kind) {
      case 'store':
        await this.#store(path);
        break;
      case 'delete':
        await this.#delete(path);
        break;
      case 'targets':
        await this.#putTargets(path);
        break;
      case 'retrieve':
        await this.#retrieve(agent, path, step.isOld);
        break;
      case 'use':
        await this.#use(await this.#session(agent), agent, path, step.ends);
        break;
      case 'token':
        await this.#issueToken(agent, path);
        break;
      case 'useToken': {
        const token = this.#model.active().findLast(({ context }) => context !== null);
        const at = this.paths.find((each) => this.#model.credentials.get(each) === token?.credential);
        if (token?.context != null && at !== undefined) await this.#use(token.context, token.agent, at, false);
        break;
      }
      case 'renew':
        if (lease !== undefined) await this.#renew(lease);
        break;
      case 'revoke':
        if (lease !== undefined) {
          await this.#submit(revokeLease(admin(), lease.id));
          lease.isEnded = true;
        }
        break;
      case 'revokeAll':
        await this.#submit(revokeLeases(admin(), { agentName: agent, path: null }));
        if (this.#registered.has(agent)) this.#model.end((each) => each.agent === agent);
        break;
      case 'register':
        await this.#register(agent);
        break;
      case 'panic':
        return this.#panic(agent);
    }
    return null;
  }

  /** The leases and sessions that a panic about the agent ends, or about all for null. */
  holdings(agent: AgentName | null): { leases: number; sessions: number } {
    const isOf = (name: AgentName) => agent === null || name === agent;
    return {
      leases: this.#model.active().filter((lease) => isOf(lease.agent)).length,
      sessions: [...this.#sessions.keys()].filter(isOf).length,
    };
  }

  /** What a panic about the agent, or about all for null, ends. */
  panicked(agent: AgentName | null): void {
    this.#model.end((lease) => agent === null || lease.agent === agent);
    for (const name of this.agents) if (agent === null || name === agent) this.#sessions.delete(name);
  }

  expected(filter: ActFilter): Expected[] {
    return this.#model.expected(filter);
  }

  #pathAt(index: number): CredentialPath {
    return this.paths[index % PATHS_EACH] ?? toPath('none');
  }

  #agentAt(index: number): AgentName {
    return this.agents[index % AGENTS_EACH] ?? ('none' as AgentName);
  }

  /** Null if it was rejected. */
  #submit<R>(operation: Operation<R>): Promise<R | null> {
    return this.#vault.ledger.submit(operation).catch((error: unknown) => rejected(error));
  }

  async #store(path: CredentialPath): Promise<void> {
    await put(this.#vault, path);
    const credential = this.#model.credentials.get(path);
    if (credential === undefined) this.#model.credentials.set(path, { newest: 1 });
    else credential.newest += 1;
  }

  async #delete(path: CredentialPath): Promise<void> {
    await this.#submit(remove(admin(), path));
    const credential = this.#model.credentials.get(path);
    this.#model.credentials.delete(path);
    this.#withTargets.delete(path);
    this.#model.end((lease) => lease.credential === credential);
  }

  async #putTargets(path: CredentialPath): Promise<void> {
    const draft = { path, service: null, allowedTargets: TARGETS, placement: { kind: 'bearer' as const } };
    await this.#submit(putTargets(admin(), draft));
    const credential = this.#model.credentials.get(path);
    if (credential !== undefined) this.#withTargets.add(path);
    this.#model.end((lease) => lease.isUse && lease.credential === credential);
  }

  async #retrieve(agent: AgentName, path: CredentialPath, isOld: boolean): Promise<void> {
    const context = await this.#session(agent);
    const version = isOld ? 1 : null;
    const request = { path, version, ttlSeconds: this.#ttl() };
    const answer = await retrieveCredential(this.#vault, context, request).catch((error: unknown) => rejected(error));
    const credential = this.#model.credentials.get(path);
    if ((answer === null) !== (credential === undefined)) throw new Error('the model expected another outcome');
    if (answer === null || credential === undefined) return;
    const seen = version ?? credential.newest;
    this.#model.did(agent, path, credential, seen, false);
    this.#model.hold(
      { id: answer.leaseId, agent, credential, version: seen, isUse: false, context: null },
      answer.expiresAt,
    );
  }

  async #use(context: Context, agent: AgentName, path: CredentialPath, ends: boolean): Promise<void> {
    const order = { path, request: REQUEST, ttlSeconds: this.#ttl(), purpose: null };
    const reply = await this.#submit(startUse(context, order));
    const started = reply === null ? null : decided(reply);
    const credential = this.#model.credentials.get(path);
    const isUsable = credential !== undefined && this.#withTargets.has(path);
    if ((started === null) === isUsable) throw new Error('the model expected another outcome');
    if (started === null || credential === undefined) return;
    this.#model.did(agent, path, credential, credential.newest, true);
    if (context.auth.kind === 'lease') return;
    const held = { id: started.leaseId, agent, credential, version: credential.newest, isUse: true, context: null };
    const lease = this.#model.hold(held, started.expiresAt);
    if (!ends) return;
    const result = { status: 200, bytes_in: 0, bytes_out: 0, redactions: 0, ended: 'complete' as const };
    await this.#submit(endUse(started, context, result));
    lease.isEnded = true;
  }

  async #issueToken(agent: AgentName, path: CredentialPath): Promise<void> {
    const tokenHash = hashToken(newId());
    const context = await this.#session(agent);
    const issued = await this.#submit(
      issueUseLease(context, { path, ttlSeconds: this.#ttl(), purpose: null, tokenHashOf: () => tokenHash }),
    );
    const credential = this.#model.credentials.get(path);
    if (issued === null || credential === undefined) return;
    const { lease } = issued;
    const holder: Context = { ...admin(), auth: { kind: 'lease', tokenHash, agentName: agent } };
    this.#model.hold({ id: lease.id, agent, credential, version: null, isUse: true, context: holder }, lease.expiresAt);
  }

  async #renew(lease: HeldLease): Promise<void> {
    const renewed = await this.#submit(renewLease(admin(), lease.id));
    if (renewed === null) throw new Error('an active lease was not renewed');
    lease.expiresAt = renewed.lease.expiresAt;
  }

  async #panic(agent: AgentName): Promise<PanicResult | null> {
    if (!this.#registered.has(agent)) return null;
    const result = await panic(this.#vault, admin(), agent, CONNECTED);
    this.panicked(agent);
    return result;
  }

  /** Deregisters an agent with the name first, whose leases and sessions end. */
  async #register(name: AgentName): Promise<void> {
    if (this.#registered.has(name)) await this.#submit(deregisterAgent(admin(), name));
    this.panicked(name);
    const request = { id: newId() as AgentId, name, description: '', publicKey: newAgentKey().publicKey };
    const agent = await this.#submit(registerAgent(admin(), request));
    if (agent !== null) this.#registered.set(name, agent);
  }

  async #session(name: AgentName): Promise<Context> {
    if (!this.#registered.has(name)) await this.#register(name);
    const known = this.#sessions.get(name);
    if (known !== undefined) return known;
    const agentId = this.#registered.get(name)?.id ?? ('none' as AgentId);
    const tokenHash = hashToken(newId());
    // A login in the millisecond of a panic would end with it.
    const issuedAt = this.#now() + 1;
    const session = { tokenHash, agentId, issuedAt, expiresAt: issuedAt + SESSION_MS, endsAt: null };
    const login = serviceEvent('service.start', null);
    await this.#submit({
      ...login,
      decide: (known, moment) => ({
        ...login.decide(known, moment),
        changes: [{ kind: 'put', resource: 'session', row: session }],
      }),
    });
    const context: Context = { ...admin(), auth: { kind: 'session', tokenHash, agentName: name } };
    this.#sessions.set(name, context);
    return context;
  }

  /** A duration from an hour to 20 days. */
  #ttl(): TtlSeconds {
    const hours = [1, 24, 20 * 24][this.#model.leaseCount % 3] ?? 1;
    return (3600 * hours) as TtlSeconds;
  }
}
