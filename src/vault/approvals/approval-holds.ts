/**
 * Holds requests that wait for operators. A request that needs an approval is recorded, and waits without a byte sent
 * until it is answered or the hold ends; then its caller is told to send it again. SOURCE: docs/approvals.md.
 * INVARIANT: only a decision of the ledger lets a request pass; a wake-up makes it decide again, and nothing else.
 */

import type { AgentId } from '../../core/names.ts';
import type { Context, Operation } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { newId, newNonce, sha256Base64 } from '../../crypto/primitives.ts';
import { fieldsMac } from '../../crypto/row-mac.ts';
import { encryptApprovalRequest } from '../../crypto/value-encryption.ts';
import type { VaultKeys } from '../../crypto/vault-keys.ts';
import { ApiError } from '../../engine/errors.ts';
import { type AgentBudgets, withBudget } from '../../ledger/budgets.ts';
import type { Clock } from '../../ledger/clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { NEVER_ABORTED } from '../../ledger/single-flight.ts';
import { countApprovals, findAnswered, NEWEST_APPROVAL } from '../../store/approval-lists.ts';
import type { Store } from '../../store/port.ts';
import type { StoredChange } from '../../store/stored-data.ts';
import type { ApprovedAction } from '../policies/approval-rule.ts';
import type { UseRequest } from '../use/target.ts';
import { type ApprovalId, type ApprovalKey, coveredParts } from './approval.ts';
import { type ApprovalAttempt, type ApprovalNeeded, type ApprovalPending, isUndecided } from './approval-requests.ts';
import { ApprovalSettlement } from './approval-settlement.ts';

/** The operators could not read more requests of one agent. */
const MAX_PENDING_OF_AGENT = 200;
/** Approximate size of the rows of an approval without the encrypted request. */
const ROWS_BYTES = 2048;
const RETRY_AFTER_SECONDS = 1;

/** Work after which an approval with an encrypted request of that size may have been added. */
interface AddingWork<R> {
  readonly requestBytes: number;
  run(): Promise<R>;
  /** Whether it was: another request of the agent may have added it before. */
  hasAdded(result: R): boolean;
}

/**
 * Bounds the approvals that one agent adds: how many wait at the same time, and how many rows and bytes they take in an
 * hour. Added rows are charged whatever becomes of the request. SOURCE: docs/approvals.md, "Limits".
 */
class ApprovalAdmission {
  readonly #parts: Pick<ApprovalHoldParts, 'store' | 'clock' | 'budgets'>;
  /** The end of the last work of each agent. */
  readonly #ended = new Map<AgentId, Promise<void>>();

  constructor(parts: Pick<ApprovalHoldParts, 'store' | 'clock' | 'budgets'>) {
    this.#parts = parts;
  }

  /**
   * Runs work that may add an approval. WHY one at a time for an agent: each has to see the rows of the ones before.
   * @throws RATE_LIMITED; errors of the work, which then is not charged
   */
  async run<R>(context: Context, agentId: AgentId, work: AddingWork<R>): Promise<R> {
    const own = (this.#ended.get(agentId) ?? Promise.resolve()).then(() => this.#admit(context, agentId, work));
    const ended = own.then(
      () => undefined,
      () => undefined,
    );
    this.#ended.set(agentId, ended);
    try {
      return await own;
    } finally {
      if (this.#ended.get(agentId) === ended) this.#ended.delete(agentId);
    }
  }

  async #admit<R>(context: Context, agentId: AgentId, { requestBytes, run, hasAdded }: AddingWork<R>): Promise<R> {
    const { store, clock, budgets } = this.#parts;
    const now = clock.now();
    const query = { agentId, agentName: null, status: 'pending' as const, now };
    const { count } = await store.run(countApprovals(store.dialect, query, NEWEST_APPROVAL, MAX_PENDING_OF_AGENT));
    if (count >= MAX_PENDING_OF_AGENT) {
      const message = `${MAX_PENDING_OF_AGENT} requests of this agent wait for approvals. Try again when some are answered.`;
      throw new ApiError('RATE_LIMITED', message, RETRY_AFTER_SECONDS);
    }
    const stored = () => withBudget(budgets.storedBytes, context, ROWS_BYTES + requestBytes, now, run, hasAdded);
    return withBudget(budgets.leases, context, 1, now, stored, hasAdded);
  }
}

/** The part of a request that operators see and to which the approval is bound. */
export interface HeldRequest {
  readonly action: ApprovedAction;
  readonly path: CredentialPath;
  /** The version that a retrieval names; null for the newest one, and for a use. */
  readonly version: string | null;
  /** The digest of the whole body and of the headers that tell how it is read; empty for a retrieval. */
  readonly bodyDigest: string;
  readonly isUpgrade: boolean;
  shown(request: UseRequest | null): string;
}

export interface ApprovalHoldParts {
  readonly ledger: Ledger;
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly clock: Clock;
  readonly budgets: AgentBudgets;
  readonly onFailure: (error: unknown) => void;
  readonly holdMs: number;
}

/** How long a request is held: less than the 30 s after which many clients give up. SDKs send it again after a 503. */
export const APPROVAL_HOLD_MS = 25_000;
/** How often a node with waiting requests reads which ones were answered. */
const POLL_INTERVAL_MS = 50;
/** The tries if terms change while a request prepares for them. */
const MAX_TRIES = 4;

export class ApprovalHolds {
  readonly #parts: ApprovalHoldParts;
  readonly #waiting = new Map<ApprovalId, Set<() => void>>();
  readonly #admission: ApprovalAdmission;
  #poll: NodeJS.Timeout | null = null;
  #isPolling = false;
  readonly #settlement: ApprovalSettlement;
  #isStopped = false;

  constructor(parts: ApprovalHoldParts) {
    this.#parts = parts;
    this.#admission = new ApprovalAdmission(parts);
    this.#settlement = new ApprovalSettlement(parts);
  }

  get heldCount(): number {
    return this.#waiting.values().reduce((count, { size }) => count + size, 0);
  }

  /**
   * Holds the request until the operation needs no approval, and resolves to its reply. `undecided` is the first reply.
   * @throws APPROVAL_PENDING when the hold ends without an answer; the decision's error
   */
  async hold<R extends object>(
    context: Context,
    undecided: ApprovalPending,
    attempt: (ask: ApprovalAttempt) => Operation<R | ApprovalPending>,
    request: HeldRequest,
    signal: AbortSignal = NEVER_ABORTED,
  ): Promise<R> {
    const { ledger } = this.#parts;
    let reply: R | ApprovalPending = undecided;
    const endsAt = performance.now() + this.#parts.holdMs;
    // The first try finds an approval that exists. If the terms change, it prepares again.
    for (let tries = 0; tries < MAX_TRIES && isUndecided(reply) && reply.approval === 'needed'; tries++) {
      const { agentId }: ApprovalNeeded = reply;
      const ask = this.#ask(reply, request, tries > 0);
      const adding: AddingWork<R | ApprovalPending> = {
        requestBytes: ask.encryptedRequest?.length ?? 0,
        run: () => ledger.submit(attempt(ask)),
        hasAdded: (result) => isUndecided(result) && result.approval === 'pending' && result.id === ask.id,
      };
      reply = tries === 0 ? await adding.run() : await this.#admission.run(context, agentId, adding);
      while (isUndecided(reply) && reply.approval === 'pending') {
        const { id } = reply;
        if (!(await this.#wait(reply, endsAt, signal))) throw stillPending(id);
        reply = await ledger.submit(attempt({ ...ask, awaited: id }));
      }
      if (!isUndecided(reply)) return reply;
    }
    throw stillUndecided();
  }

  #ask(needed: ApprovalNeeded, held: HeldRequest, mayAdd: boolean): ApprovalAttempt {
    const { action, path, version, bodyDigest, isUpgrade, shown } = held;
    const { keys } = this.#parts;
    const { agentId, terms, request } = needed;
    const id = newId() as ApprovalId;
    const retrieved = version === null ? null : { version };
    const covered = request === null ? retrieved : { use: request, bodyDigest, isUpgrade };
    return {
      id,
      nonce: newNonce(),
      key: fieldsMac(keys.row, 'approval-key', coveredParts(agentId, action, path, terms, covered)) as ApprovalKey,
      needed,
      encryptedRequest: mayAdd ? encryptApprovalRequest(keys.row, id, shown(request)) : null,
      awaited: null,
      digestOf: sha256Base64,
    };
  }

  /** Resolves when the approval may have been answered, or has timed out; false when the hold has ended. */
  async #wait(
    { id, answerBy }: Extract<ApprovalPending, { approval: 'pending' }>,
    endsAt: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const untilEnd = endsAt - performance.now();
    if (untilEnd <= 0 || signal.aborted || this.#isStopped) return false;
    const untilTimeout = answerBy - this.#parts.clock.now();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const wake = (): void => resolve(!this.#isStopped);
    const abort = (): void => resolve(false);
    const timer = setTimeout(() => resolve(untilTimeout <= untilEnd), Math.max(0, Math.min(untilEnd, untilTimeout)));
    signal.addEventListener('abort', abort, { once: true });
    const others = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, others.add(wake));
    this.#startPolling();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      others.delete(wake);
      if (others.size === 0) this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#stopPolling();
    }
  }

  /** Wakes the requests that a commit of this node answers. */
  committed(changes: readonly StoredChange[]): void {
    this.#settlement.committed(changes);
    for (const change of changes) {
      if (change.kind !== 'put' || change.resource !== 'approval') continue;
      if (change.row.status !== 'pending') this.#wake(change.row.id);
    }
  }

  #wake(id: ApprovalId): void {
    for (const wake of this.#waiting.get(id) ?? []) wake();
  }

  #startPolling(): void {
    this.#poll ??= setInterval(() => void this.#pollAnswers(), POLL_INTERVAL_MS);
  }

  #stopPolling(): void {
    if (this.#poll !== null) clearInterval(this.#poll);
    this.#poll = null;
  }

  /**
   * Finds the answers that other nodes recorded, or this one between a decision and its wait. A read that fails is
   * repeated by the next interval.
   */
  async #pollAnswers(): Promise<void> {
    if (this.#isPolling || this.#waiting.size === 0) return;
    this.#isPolling = true;
    try {
      const { store } = this.#parts;
      const answered = await store.run(findAnswered(store.dialect, [...this.#waiting.keys()]), 'urgent');
      for (const id of answered) this.#wake(id);
    } catch (error) {
      this.#parts.onFailure(error);
    } finally {
      this.#isPolling = false;
    }
  }

  /** Ends every hold; the callers send their requests again. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopPolling();
    for (const id of [...this.#waiting.keys()]) this.#wake(id);
    await this.#settlement.stop();
  }
}

function stillPending(id: ApprovalId): ApiError {
  const message =
    "This request needs an operator's approval, and none has answered yet. This is not a refusal: send the same request again to keep waiting.";
  return new ApiError('APPROVAL_PENDING', message, RETRY_AFTER_SECONDS, id);
}

/** Its policies changed again and again, or others used up each grant first. */
function stillUndecided(): ApiError {
  return new ApiError('UNAVAILABLE', 'This request could not be decided. Send it again in a second.', 1);
}
