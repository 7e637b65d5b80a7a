/**
 * Brokered requests, in which agents use credentials that they never see. A request is decided and recorded, then the
 * broker makes it; its result is recorded when the response has ended. It is aborted when its lease, caller, grant or
 * target ends. INVARIANT: the broker receives a request only after the entry of its intent is durable.
 */
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrokerClient } from '../../broker/broker-client.ts';
import type { BrokerHead, HeaderPairs, UpstreamRequestSpec, UseResult } from '../../broker/protocol.ts';
import { Counter } from '../../core/measures.ts';
import type { ActorName, EntryId } from '../../core/names.ts';
import type { Context, Operation } from '../../core/operation.ts';
import { withBudget } from '../../ledger/budgets.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { StoredChange } from '../../store/stored-data.ts';
import type { ApprovalHolds } from '../approvals/approval-holds.ts';
import { isUndecided } from '../approvals/approval-requests.ts';
import { type AdmittedCall, HeldUses } from '../approvals/held-requests.ts';
import { USE_ENDS, type UseEnd } from '../audit/audit-entry.ts';
import type { Vault } from '../vault.ts';
import type { Admission, UseLimits } from './use-limits.ts';
import type { AdmittedRequest, BrokeredRequest } from './use-operations.ts';
import { checkUse, endUse, startUse } from './use-operations.ts';

/** A brokered request with its headers and its body. */
export interface ReceivedRequest extends BrokeredRequest {
  readonly headers: HeaderPairs;
  /**
   * Called when the request is allowed and recorded; the body is not read before. Returns null for a request without a
   * body.
   */
  openBody(): Readable | null;
  /** The length in bytes; null if it is not known. */
  readonly bodyLength: number | null;
  readonly isUpgrade: boolean;
  /** The base URL without its selector, which replaces the target's origin in links; null to leave links unchanged. */
  readonly baseUrl: string | null;
  readonly signal?: AbortSignal;
}

export interface ActiveRequest {
  readonly admitted: AdmittedRequest;
  readonly head: BrokerHead;
  /** The caller destroys it to abort the request. */
  readonly body: Readable;
  /** Resolves when the response has ended; never rejects. */
  readonly result: Promise<UseResult>;
  /** Known when the body has ended. */
  trailers(): HeaderPairs;
}

interface Running {
  readonly context: Context;
  readonly admitted: AdmittedRequest;
  readonly controller: AbortController;
  readonly admission: Admission;
  /** Set before the request is aborted because its lease, caller, grant or target has ended. */
  end: UseEnd | null;
  /** Resolves when the response has ended. */
  ended: Promise<void>;
}

/** Limits on the destinations of brokered requests, whatever a target allows. */
export interface NetworkLimits {
  /** The only networks that targets may allow; null for all. */
  readonly targetNetworks: readonly string[] | null;
  readonly ownPorts: () => readonly number[];
}

/** Whether the change may end any brokered request. */
function mayEndAny(change: StoredChange): boolean {
  if (change.kind === 'put') return change.resource === 'policy' || change.resource === 'targets';
  return change.kind === 'remove' || change.kind === 'revokeMatching';
}

/** Half of the second within which a change on another node aborts a brokered request here. */
const CHECK_INTERVAL_MS = 500;
const MAX_CHECKS = 1000;
const RETRY_MS = 1000;
/** WHY one for all: an abort without a reason creates an error with its stack for each request. */
const ABORTED = new Error('the brokered request was aborted');

export class Uses {
  readonly #ledger: Ledger;
  readonly #broker: BrokerClient;
  readonly #limits: UseLimits;
  readonly #held: HeldUses;
  readonly #networks: NetworkLimits;
  /** The key is the id of the intent's entry. The requests that were checked longest ago come first. */
  readonly #running = new Map<EntryId, Running>();
  readonly measures = { started: 0, redactions: 0, ended: new Counter(USE_ENDS), bytes: new Counter(['in', 'out']) };
  #timer: NodeJS.Timeout | null = null;
  /** Results that are not recorded yet. */
  readonly #unrecorded = new Set<Promise<void>>();
  #isStopped = false;

  constructor(
    ledger: Ledger,
    broker: BrokerClient,
    limits: UseLimits,
    approvals: ApprovalHolds,
    networks: NetworkLimits,
  ) {
    this.#ledger = ledger;
    this.#broker = broker;
    this.#limits = limits;
    this.#held = new HeldUses(approvals);
    this.#networks = networks;
  }

  get runningCount(): number {
    return this.#running.size;
  }

  async #decide(context: Context, requested: ReceivedRequest): Promise<AdmittedCall> {
    const reply = await this.#ledger.submit(startUse(context, requested, null));
    if (isUndecided(reply)) return this.#held.hold(context, reply, requested);
    return { admitted: reply, call: requested, release: () => undefined };
  }

  /** Resolves when the head of the upstream's response has arrived. @throws RATE_LIMITED; the decision's error */
  async start(context: Context, requested: ReceivedRequest): Promise<ActiveRequest> {
    const admission = await this.#limits.admit(context, requested.path);
    const { admitted, call, release } = await this.#decide(context, requested).catch((error: unknown): never => {
      admission.cancel();
      throw error;
    });
    const running: Running = {
      context,
      admitted,
      controller: new AbortController(),
      admission,
      end: null,
      ended: Promise.resolve(),
    };
    this.#running.set(admitted.entryId, running);
    this.measures.started += 1;
    const { signal } = call;
    signal?.addEventListener('abort', () => running.controller.abort(ABORTED), { once: true });
    // WHY also if stopped: the decision may have waited for the store while the vault was being locked.
    if (signal?.aborted === true || this.#isStopped) running.controller.abort(ABORTED);
    this.#timer ??= setInterval(() => this.#checkOldest(), CHECK_INTERVAL_MS).unref();
    const use = this.#broker.use(
      toUpstreamRequest(call, admitted, this.#networks),
      call.openBody(),
      running.controller.signal,
    );
    running.ended = use.result.then((result) => {
      release();
      this.#end(running, result);
    });
    const head = await use.head.catch((): BrokerHead => ({ kind: 'error', failure: 'broker' }));
    return { admitted, head, body: use.body, result: use.result, trailers: () => use.trailers };
  }

  /** Checks every brokered request after a commit that may have ended one. */
  committed(changes: readonly StoredChange[]): void {
    if (this.#running.size === 0) return;
    // WHY: at the end of a session's request its lease is revoked, which affects no other request. A changed
    // approval affects only the requests that it admitted.
    const leases = new Set(changes.flatMap((change) => (change.kind === 'revokeLease' ? [change.id] : [])));
    const approvals = new Set(
      changes.flatMap((change) =>
        change.kind === 'put' && change.resource === 'approval' && change.row.status === 'withdrawn'
          ? [change.row.id]
          : [],
      ),
    );
    const concernsAll = changes.some(mayEndAny);
    if (!concernsAll && leases.size === 0 && approvals.size === 0) return;
    for (const running of this.#running.values()) {
      const { leaseId, approvalId } = running.admitted;
      const isConcerned = leases.has(leaseId) || (approvalId !== null && approvals.has(approvalId));
      if (concernsAll || isConcerned) this.#check(running);
    }
  }

  /**
   * Aborts the brokered requests of the agent, or all for null, whose leases or callers ended. Returns their number.
   */
  abort(agentName: ActorName | null): number {
    const running = this.#runningOf(agentName);
    for (const each of running) {
      each.end = 'revoked';
      each.controller.abort(ABORTED);
    }
    return running.length;
  }

  /** The number of brokered requests of the agent, or of all for null. */
  count(agentName: ActorName | null): number {
    return this.#runningOf(agentName).length;
  }

  #runningOf(agentName: ActorName | null): readonly Running[] {
    return [...this.#running.values()].filter(
      ({ end, admitted }) => end === null && (agentName === null || admitted.agentName === agentName),
    );
  }

  /** Aborts every brokered request. Resolves when their results are recorded, or cannot be. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    for (const { controller } of this.#running.values()) controller.abort(ABORTED);
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
    await Promise.all(this.#unrecorded);
    await this.#limits.stop();
  }

  /** Finds requests that no commit of this node ends: expired leases and sessions, and changes on other nodes. */
  #checkOldest(): void {
    for (const [id, running] of [...this.#running].slice(0, MAX_CHECKS)) {
      this.#running.delete(id);
      this.#running.set(id, running);
      this.#check(running);
    }
  }

  #check(running: Running): void {
    const { admitted, context } = running;
    const check = checkUse(admitted, context.auth);
    // A read that fails decides nothing; the next interval checks again.
    this.#ledger.read(check).then(
      (end) => {
        if (end === null || running.end !== null) return;
        running.end = end;
        running.controller.abort(ABORTED);
      },
      () => undefined,
    );
  }

  #end(running: Running, { status, bytesIn, bytesOut, redactions, ended }: UseResult): void {
    const { context, admitted } = running;
    this.#running.delete(admitted.entryId);
    running.admission.end(bytesIn + bytesOut);
    this.measures.ended.add(running.end ?? ended);
    this.measures.redactions += redactions;
    this.measures.bytes.add('in', bytesIn);
    this.measures.bytes.add('out', bytesOut);
    if (this.#running.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    const operation = endUse(admitted, context, {
      status,
      bytes_in: bytesIn,
      bytes_out: bytesOut,
      redactions,
      ended: running.end ?? ended,
    });
    const recorded = this.#record(operation).finally(() => this.#unrecorded.delete(recorded));
    this.#unrecorded.add(recorded);
  }

  /** Repeats until it succeeds or the server stops: the response was passed on, so its end must be recorded. */
  async #record(operation: Operation<null>): Promise<void> {
    for (;;) {
      const isRecorded = await this.#ledger.submitWithNext(operation).then(
        () => true,
        () => false,
      );
      if (isRecorded || this.#isStopped) return;
      await sleep(RETRY_MS, undefined, { ref: false });
    }
  }
}

function toUpstreamRequest(
  { headers, bodyLength, isUpgrade, baseUrl }: ReceivedRequest,
  admitted: AdmittedRequest,
  { targetNetworks, ownPorts }: NetworkLimits,
): UpstreamRequestSpec {
  const { request, target, placement, value, selector } = admitted;
  const { method, url } = request;
  return {
    caller: admitted.agentName,
    method,
    scheme: url.scheme,
    host: url.host,
    port: url.port,
    path: url.path + url.query,
    headers,
    bodyLength,
    placement,
    value: value.reveal(),
    allowNetworks: target.allowNetworks,
    targetNetworks,
    ownPorts: ownPorts(),
    caPem: target.caPem,
    redact: [],
    isUpgrade,
    linkPrefix: baseUrl === null || selector === null ? null : `${baseUrl}/${selector}`,
  };
}

/** Decides and starts one brokered request. Each has a lease, so it is charged to the budget of leases. */
export function useCredential(vault: Vault, context: Context, call: ReceivedRequest): Promise<ActiveRequest> {
  const { uses, budgets, clock } = vault;
  return withBudget(budgets.leases, context, 1, clock.now(), () => uses.start(context, call));
}
