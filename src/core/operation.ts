/**
 * An operation: one pure, synchronous function from the known state, the caller and the time to an outcome. It does no I/O and
 * reads no clock. A rejection is an outcome like any other, so that it is recorded.
 */
import { type Authentication, actorId, actorName, type Caller, identify, type Requester } from './agent.ts';
import type { AuditResult, EntryDraft, EventType } from './audit.ts';
import type { BatchState, ReadSet } from './batch-state.ts';
import type { Change } from './change.ts';
import type { AssociatedData, Sealed } from './credential.ts';
import { ApiError, type ApiErrorCode, type ErrorInfo } from './errors.ts';
import {
  IDEMPOTENCY_TTL_MS,
  type Idempotency,
  type IdempotencyRecord,
  idempotencyKeyReused,
  type JsonSerializable,
} from './idempotency.ts';
import type { AgentId, EntryId } from './names.ts';
import type { Secret } from './secret.ts';

/** What an operation is decided at. */
interface Instant {
  /** Milliseconds since 1970; never below the last entry's. */
  readonly now: number;
  /** The sequence number of the entry that this decision gets, if it gets one. */
  readonly seq: number;
  /** The id of that entry. An intent hands it out, for the entry of its result. */
  readonly entryId: EntryId;
  /** An id that nothing has yet: a UUIDv7. */
  newId(): string;
}

/**
 * Conditions of a request on its target. No resource here has an entity tag, so that a list of tags never matches.
 * SOURCE: RFC 9110, section 13.
 */
export interface Preconditions {
  readonly ifMatch: 'any' | 'tags' | null;
  readonly ifNoneMatch: 'any' | null;
}

/** What is known of a request in addition to what it asks for. */
export interface Context {
  readonly authentication: Authentication;
  readonly requestId: string;
  readonly remoteAddr: string | null;
  /** Left out where the caller gave no key, or the route accepts none. */
  readonly idempotency?: Idempotency;
  readonly preconditions?: Preconditions;
}

/** A value to unseal after the decision and before chaining. */
export interface PendingUnseal<R> {
  readonly content: Sealed | Secret;
  readonly associatedData: AssociatedData;
  /** The outcome where the value does not authenticate. */
  onFailure(): Outcome<never>;
  reply(value: Secret): R;
}

export interface Outcome<R> {
  readonly answer: { readonly reply: R } | { readonly unseal: PendingUnseal<R> } | { readonly fault: ErrorInfo };
  /** Null if it is not recorded. */
  readonly entry: EntryDraft | null;
  readonly changes: readonly Change[];
}

export interface Operation<R> {
  readonly reads: ReadSet;
  /** Who submits it, not yet identified. */
  readonly requester: Requester;
  decide(known: BatchState, moment: Instant): Outcome<R>;
}

/** Any type whose values JSON restores; `never` for the others. */
export type Replayable<R> = [R] extends [JsonSerializable<R>] ? unknown : never;

/** A reply is plain data: a value can only come from `unseal`, which is never saved for a retry. */
export function succeeded<R>(
  reply: R & Replayable<R>,
  entry: EntryDraft | null,
  changes: readonly Change[] = [],
): Outcome<R> {
  return { answer: { reply }, entry, changes };
}

export function refused(
  code: ApiErrorCode,
  message: string,
  entry: EntryDraft | null,
  changes: readonly Change[] = [],
): Outcome<never> {
  return { answer: { fault: { code, message } }, entry, changes };
}

/** What an entry may say in addition to its event and result. */
interface EntryDetails {
  readonly resource?: string;
  readonly policyName?: string | null;
  readonly leaseId?: string | null;
  readonly reason?: string | null;
  readonly completes?: EntryId;
}

/** A request whose caller is identified, with what is needed to decide it. */
export interface DecisionPoint {
  readonly caller: Caller;
  readonly state: BatchState;
  readonly moment: Instant;
  entry(result: AuditResult, details?: EntryDetails): EntryDraft;
}

interface OperationSpec {
  readonly context: Context;
  readonly event: EventType;
  readonly resource: string;
  /** `admin`: an agent is rejected, and the rejection is recorded. */
  readonly requiredRole: 'admin' | 'agent';
  readonly reads?: ReadSet;
  /** Left out where the operation succeeds only on a target that exists. */
  readonly targetExists?: (known: BatchState) => boolean;
}

/**
 * An operation of a caller, which is identified within the batch. Rejects agents where only the administrator may do it, checks
 * the request's preconditions, and runs a request with an Idempotency-Key once.
 */
export function operation<R>(spec: OperationSpec, decide: (asked: DecisionPoint) => Outcome<R>): Operation<R> {
  const { context, reads = {} } = spec;
  const { authentication, idempotency } = context;
  return {
    reads: {
      ...reads,
      ...(authentication.kind === 'session' ? { session: authentication.tokenHash } : {}),
      ...(idempotency === undefined ? {} : { idempotency: idempotency.id }),
    },
    requester: authentication,
    decide(known, moment) {
      // A repeated request identifies its caller too: a session that has ended gets no saved reply.
      const caller = identify(known, authentication, moment.now);
      if (caller instanceof ApiError) return refused(caller.code, caller.message, null);
      if (idempotency === undefined) return decideOnce(spec, decide, caller, known, moment);
      const agentId = actorId(caller);
      return (
        repeated<R>(idempotency, agentId, known, moment) ??
        saved(idempotency, agentId, decideOnce(spec, decide, caller, known, moment), moment)
      );
    },
  };
}

function decideOnce<R>(
  { context, event, resource, requiredRole, targetExists = () => true }: OperationSpec,
  decide: (asked: DecisionPoint) => Outcome<R>,
  caller: Caller,
  known: BatchState,
  moment: Instant,
): Outcome<R> {
  const entry = (result: AuditResult, details: EntryDetails = {}): EntryDraft => ({
    eventType: event,
    agentName: actorName(caller),
    resource,
    result,
    policyName: null,
    leaseId: null,
    reason: null,
    requestId: context.requestId,
    remoteAddr: context.remoteAddr,
    ...details,
  });
  if (requiredRole === 'admin' && caller.kind !== 'admin') {
    const reason = 'only the administrator may do this';
    return refused('ACCESS_DENIED', 'Only the administrator may do this.', entry('denied', { reason }));
  }
  const outcome = decide({ caller, state: known, moment, entry });
  const { preconditions } = context;
  if (preconditions === undefined || 'fault' in outcome.answer) return outcome;
  if (meets(preconditions, targetExists(known))) return outcome;
  const denied = entry('denied', { reason: 'a precondition of the request does not hold' });
  const message = 'A precondition of the request does not hold.';
  return refused('PRECONDITION_FAILED', message, outcome.entry === null ? null : denied);
}

/** Whether the preconditions hold; checked only for what succeeds without them. */
function meets({ ifMatch, ifNoneMatch }: Preconditions, exists: boolean): boolean {
  return exists ? ifMatch !== 'tags' && ifNoneMatch === null : ifMatch === null;
}

/** The outcome of a repeated request: the saved reply, no change and no entry. Null for a request that is not a repeat. */
function repeated<R>(
  { id, requestMac }: Idempotency,
  agentId: AgentId,
  known: BatchState,
  { now }: Instant,
): Outcome<R> | null {
  const record = known.keptReply(id);
  if (record === null || record.agentId !== agentId || now >= record.expiresAt) return null;
  if (record.requestMac !== requestMac) {
    const { code, message } = idempotencyKeyReused();
    return refused(code, message, null);
  }
  // The same request is the same operation, so that its saved reply is an R.
  return { answer: { reply: JSON.parse(record.reply) as R }, entry: null, changes: [] };
}

/** The outcome, with a record of its reply in the same transaction. A rejection is not saved, nor is a value: a retry decides again. */
function saved<R>(
  { id, requestMac }: Idempotency,
  agentId: AgentId,
  outcome: Outcome<R>,
  { now }: Instant,
): Outcome<R> {
  if (!('reply' in outcome.answer)) return outcome;
  const { reply } = outcome.answer;
  const record: IdempotencyRecord = {
    id,
    agentId,
    requestMac,
    reply: JSON.stringify(reply),
    expiresAt: now + IDEMPOTENCY_TTL_MS,
  };
  return { ...outcome, changes: [...outcome.changes, { kind: 'saveIdempotencyRecord', reply: record }] };
}
