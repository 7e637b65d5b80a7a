/** A vault with two agents and three operators, whose decisions about approvals run without a database. */

import { BatchState, LoadedRows } from '../../../src/core/batch-state.ts';
import { ControlState } from '../../../src/core/control.ts';
import { errorOf, toApiError } from '../../../src/core/denials.ts';
import type { AuthContext } from '../../../src/core/identity.ts';
import type { AgentId, AgentName, EntryId, OperatorName, PublicKey, TokenHash } from '../../../src/core/names.ts';
import type { Context, Operation, Outcome } from '../../../src/core/operation.ts';
import { parsePath } from '../../../src/core/path.ts';
import type { Agent } from '../../../src/vault/agents/agent.ts';
import {
  type Approval,
  type ApprovalId,
  type ApprovalKey,
  coveredParts,
} from '../../../src/vault/approvals/approval.ts';
import { answerApproval, settleApproval, withdrawApproval } from '../../../src/vault/approvals/approval-operations.ts';
import {
  type ApprovalAttempt,
  type ApprovalPending,
  isUndecided,
} from '../../../src/vault/approvals/approval-requests.ts';
import { type Credential, Secret } from '../../../src/vault/credentials/credential.ts';
import type { Operator, Role } from '../../../src/vault/operators/operator.ts';
import { Policy, type PolicyInput } from '../../../src/vault/policies/policy.ts';
import { parseMethod, parseTargets } from '../../../src/vault/use/target.ts';
import { putTargets } from '../../../src/vault/use/target-operations.ts';
import { parseUrl } from '../../../src/vault/use/upstream-url.ts';
import { type AdmittedRequest, startUse } from '../../../src/vault/use/use-operations.ts';

const START = Date.UTC(2026, 0, 1);
const PATH = parsePath('openai/key');
export const AGENTS = ['bot', 'other'] as const;
export const OPERATORS = ['alice', 'bob', 'carol'] as const;
const CREDENTIAL: Credential = {
  id: 'credential' as Credential['id'],
  path: PATH,
  type: 'api_key' as Credential['type'],
  description: '',
  createdAt: 0,
  updatedAt: 0,
  version: 1,
};

export interface Asked {
  readonly agent: (typeof AGENTS)[number];
  /** Number of the agent's session. */
  readonly session: number;
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly body: string;
}

/** What became of a request. */
export type Fate = 'passed' | 'pending' | 'denied' | 'timed out' | 'withdrawn' | 'no approver' | 'refused';

const FATES: Readonly<Record<string, Fate>> = {
  APPROVAL_DENIED: 'denied',
  APPROVAL_TIMED_OUT: 'timed out',
  APPROVAL_WITHDRAWN: 'withdrawn',
  NO_APPROVER: 'no approver',
};

export class World {
  readonly state: BatchState;
  now = START;
  seq = 0;

  constructor(operators: readonly (readonly [name: string, role: Role])[], registeredBy: string | null = null) {
    const loaded = new LoadedRows();
    const agents = AGENTS.map((name): Agent => agentOf(name, 'key 1', registeredBy));
    for (const { id, name } of agents) {
      for (const session of [0, 1]) {
        const tokenHash = `${name} ${session}` as TokenHash;
        loaded.rows.session.set(tokenHash, {
          tokenHash,
          agentId: id,
          issuedAt: 0,
          expiresAt: START + 1e9,
          endsAt: null,
        });
      }
    }
    loaded.rows.credential.set(PATH, CREDENTIAL);
    const content = new Secret('sk-hidden');
    loaded.putVersion(CREDENTIAL.id, { version: 1, type: CREDENTIAL.type, createdAt: 0, content });
    const people = operators.map(([name, role]): Operator => {
      const tokenHash = name as TokenHash;
      const id = name as AgentId;
      loaded.rows.session.set(tokenHash, {
        tokenHash,
        agentId: id,
        issuedAt: 0,
        expiresAt: START + 1e9,
        endsAt: START + 1e9,
      });
      return operatorOf(name, role);
    });
    this.state = new BatchState(new ControlState(agents, [], people), loaded, {
      adminMayRetrieve: true,
      versionsKept: 10,
    });
  }

  pass(ms: number): void {
    this.now += ms;
  }

  decide<R>(operation: Operation<R>): Outcome<R> {
    this.seq += 1;
    const ids = { entryId: `entry ${this.seq}` as EntryId, newId: () => `id ${this.seq}` };
    const outcome = operation.decide(this.state, { now: this.now, seq: this.seq, ...ids });
    for (const change of outcome.changes) this.state.apply(change);
    return outcome;
  }

  policy(name: string, approval: PolicyInput['approval'], maxTtlSeconds = 300): void {
    const fields = {
      principal: 'agent:*',
      resources: ['openai/*'],
      actions: ['use'],
      max_ttl: maxTtlSeconds,
      approval,
    };
    this.state.apply({
      kind: 'put' as const,
      resource: 'policy',
      row: { ...Policy.parse({ name, ...fields }), createdAt: 0 },
    });
  }

  targets(methods: readonly string[]): void {
    const allowedTargets = parseTargets([
      { origin: 'https://api.openai.com', methods },
      { origin: 'https://eu.openai.com', methods },
    ]);
    this.decide(
      putTargets(contextOf({ kind: 'admin' }), { path: PATH, service: null, allowedTargets, placement: BEARER }),
    );
  }

  rotate(agent: (typeof AGENTS)[number], key: string): void {
    const known = this.state.control.agentByName(agent as AgentName);
    if (known !== null)
      this.state.apply({ kind: 'put' as const, resource: 'agent', row: { ...known, publicKey: key as PublicKey } });
  }

  /** Replaces the key with a grace time, as the route does. */
  rotateBy(agent: (typeof AGENTS)[number], key: string, operator: string): void {
    const known = this.state.control.agentByName(agent as AgentName);
    if (known === null) return;
    const names = [...known.registeredBy, operator as OperatorName];
    const former = known.publicKey === key ? (known.formerPublicKey ?? null) : known.publicKey;
    const rotated = { ...known, publicKey: key as PublicKey, formerPublicKey: former, registeredBy: names };
    this.state.apply({ kind: 'put' as const, resource: 'agent', row: rotated });
  }

  /** A try of a request that waits for the approval already, with the same ask. */
  askAgain(asked: Asked, awaited: ApprovalId) {
    return this.ask(asked, awaited, awaited);
  }

  /**
   * Asks for an approval once it is needed, as the vault does. `awaited` is the approval that the request waits for.
   */
  ask(
    asked: Asked,
    awaited: ApprovalId | null = null,
    own: ApprovalId | null = null,
  ): { fate: Fate; id: ApprovalId | null; code: string | null } {
    const { agent, session } = asked;
    const context = contextOf({
      kind: 'session',
      tokenHash: `${agent} ${session}` as TokenHash,
      agentName: agent as AgentName,
    });
    const request = { method: parseMethod(asked.method), url: parseUrl(asked.url) };
    const order = { path: PATH, request, ttlSeconds: null, purpose: null };
    const attempt = (ask: ApprovalAttempt | null) => this.decide(startUse(context, order, ask));
    let outcome = attempt(null);
    const needed = undecidedOf(outcome);
    if (needed?.approval === 'needed') {
      const covered =
        needed.request === null ? null : { use: needed.request, bodyDigest: asked.body, isUpgrade: false };
      outcome = attempt({
        id: own ?? (`approval ${String(this.seq).padStart(6, '0')}` as ApprovalId),
        nonce: `nonce ${this.seq}`,
        key: JSON.stringify(coveredParts(needed.agentId, 'use', PATH, needed.terms, covered)) as ApprovalKey,
        needed,
        encryptedRequest: new Uint8Array(),
        awaited,
        digestOf: (text) => text,
      });
    }
    return fateOf(outcome);
  }

  /** The status of the response, or the code of the error. */
  answer(operator: string, id: ApprovalId, isApproved: boolean, nonce = this.approval(id)?.nonce ?? ''): string {
    const context = operatorContext(operator);
    const answer = { isApproved, nonce, reason: null };
    return resultOf(this.decide(answerApproval(context, { id, path: PATH }, answer, (text) => text)));
  }

  withdraw(who: Context, id: ApprovalId): string {
    return resultOf(this.decide(withdrawApproval(who, { id, path: PATH })));
  }

  settle(id: ApprovalId): void {
    this.decide(settleApproval({ id, path: PATH }, (text) => text));
  }

  approval(id: ApprovalId): Approval | null {
    return this.state.approval(id);
  }
}

const BEARER = { kind: 'bearer' as const };

const contextOf = (auth: AuthContext): Context => ({
  auth,
  requestId: 'r',
  remoteAddr: null,
});

export function operatorContext(name: string): Context {
  if (name === 'admin') return contextOf({ kind: 'admin' });
  const agentName = `operator:${name}` as OperatorName;
  return contextOf({ kind: 'operator', tokenHash: name as TokenHash, agentName });
}

export function agentContext(name: string, session = 0): Context {
  return contextOf({ kind: 'session', tokenHash: `${name} ${session}` as TokenHash, agentName: name as AgentName });
}

export function agentOf(name: string, key: string, registeredBy: string | null = null): Agent {
  return {
    id: `id of ${name}` as AgentId,
    name: name as AgentName,
    description: '',
    publicKey: key as PublicKey,
    registeredAt: 0,
    sessionsEndedAt: null,
    formerPublicKey: null,
    formerKeyUntil: null,
    registeredBy: registeredBy === null ? [] : [registeredBy as OperatorName],
  };
}

export function operatorOf(name: string, role: Role): Operator {
  return {
    id: name as AgentId,
    name: `operator:${name}` as OperatorName,
    description: '',
    roles: [role],
    publicKey: 'key' as PublicKey,
    passkeys: [],
    identity: null,
    addedAt: 0,
    sessionsEndedAt: null,
  };
}

function undecidedOf(outcome: Outcome<AdmittedRequest | ApprovalPending>): ApprovalPending | null {
  if (!('reply' in outcome.response)) return null;
  const { reply } = outcome.response;
  return isUndecided(reply) ? reply : null;
}

function fateOf(outcome: Outcome<AdmittedRequest | ApprovalPending>): ReturnType<World['ask']> {
  const { response } = outcome;
  if ('denial' in response) {
    const { code, approvalId } = toApiError(response.denial);
    return { fate: FATES[code] ?? 'refused', id: approvalId as ApprovalId | null, code };
  }
  const undecided = undecidedOf(outcome);
  if (undecided === null) return { fate: 'passed', id: null, code: null };
  return { fate: 'pending', id: undecided.approval === 'pending' ? undecided.id : null, code: null };
}

function resultOf({ response }: Outcome<unknown>): string {
  return 'denial' in response ? errorOf(response.denial) : 'ok';
}
