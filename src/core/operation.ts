/**
 * What an operation is: one pure, synchronous function from what is known, who asks and the time to an outcome. No I/O, no
 * clock, no randomness, no await. A refusal is an outcome like any other, so that it is recorded.
 */
import { type Authentication, actorName, type Caller, identify } from './agent.ts';
import type { AuditResult, EntryDraft, EventType } from './audit.ts';
import type { BatchState, ReadSet } from './batch-state.ts';
import type { Change } from './change.ts';
import type { AssociatedData, Sealed } from './credential.ts';
import { ApiError, type ApiErrorCode, type ErrorInfo } from './errors.ts';
import type { Idempotency } from './idempotency.ts';
import { ADMIN, type TokenHash } from './names.ts';
import type { Secret } from './secret.ts';

/** When an operation is decided. */
interface Instant {
  /** Milliseconds since 1970; never below the last entry's. */
  readonly now: number;
  /** The ordinal of the entry that this decision gets, if it gets one. */
  readonly seq: number;
}

/**
 * What a request presupposes of its target. No resource here has an entity tag, so that a list of tags never matches.
 * SOURCE: RFC 9110, section 13.
 */
export interface Preconditions {
  readonly ifMatch: 'any' | 'tags' | null;
  readonly ifNoneMatch: 'any' | null;
}

/** What is known of a request beside what it asks. */
export interface Context {
  readonly authentication: Authentication;
  readonly requestId: string;
  readonly remoteAddr: string | null;
  /** Left out where the caller gave no key, or the route takes none. */
  readonly idempotency?: Idempotency;
  readonly preconditions?: Preconditions;
}

/** A value to be opened after the decision and before chaining. If it does not authenticate, `unreadable` is the outcome. */
interface PendingUnseal {
  readonly content: Sealed | Secret;
  readonly associatedData: AssociatedData;
  readonly onUnsealFailure: () => Outcome<never>;
}

export interface Outcome<R> {
  readonly answer: { readonly reply: R } | { readonly fault: ErrorInfo };
  /** Null for what is not recorded. */
  readonly entry: EntryDraft | null;
  readonly changes: readonly Change[];
  readonly unseal: PendingUnseal | null;
}

export interface Operation<R> {
  readonly reads: ReadSet;
  /** The caller's, to be known when it is decided; null for whoever has none. */
  readonly session: TokenHash | null;
  /** Whose share of the service it takes: an agent's or the administrator's by name, or that of a stranger's address. */
  readonly fairnessKey: string;
  /** Of somebody who has shown no token: all of them together get a part of the room. */
  readonly isUnauthenticated?: true;
  /** About what it holds in memory, for bounding a turn and the queue. */
  readonly sizeBytes: number;
  decide(known: BatchState, moment: Instant): Outcome<R>;
}

export function succeeded<R>(reply: R, entry: EntryDraft | null, changes: readonly Change[] = []): Outcome<R> {
  return { answer: { reply }, entry, changes, unseal: null };
}

export function refused(
  code: ApiErrorCode,
  message: string,
  entry: EntryDraft | null,
  changes: readonly Change[] = [],
): Outcome<never> {
  return { answer: { fault: { code, message } }, entry, changes, unseal: null };
}

/** What an entry may say beside its event, resource and result. */
interface EntryDetails {
  readonly resource?: string;
  readonly policyName?: string | null;
  readonly leaseId?: string | null;
  readonly reason?: string | null;
}

/** A request whose caller is known, with what is needed to decide it. */
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
  /** `admin`: an agent is refused, and that is recorded. */
  readonly requiredRole: 'admin' | 'agent';
  readonly reads?: ReadSet;
  readonly sizeBytes?: number;
  /** Left out where the operation succeeds only on a target that exists. */
  readonly targetExists?: (known: BatchState) => boolean;
}

/** Whether the preconditions hold; to be asked of what succeeds without them. */
function meets({ ifMatch, ifNoneMatch }: Preconditions, exists: boolean): boolean {
  return exists ? ifMatch !== 'tags' && ifNoneMatch === null : ifMatch === null;
}

/** An operation of a caller: identified within the turn, refused here where it is the administrator's alone. */
export function operation<R>(description: OperationSpec, decide: (asked: DecisionPoint) => Outcome<R>): Operation<R> {
  const { context, event, resource, requiredRole, reads = {}, sizeBytes = 0, targetExists = () => true } = description;
  const { authentication, preconditions } = context;
  return {
    reads,
    session: authentication.kind === 'session' ? authentication.tokenHash : null,
    fairnessKey: authentication.kind === 'session' ? authentication.agentName : ADMIN,
    sizeBytes,
    decide(known, moment) {
      const caller = identify(known, authentication, moment.now);
      if (caller instanceof ApiError) return refused(caller.code, caller.message, null);
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
      if (preconditions === undefined || 'fault' in outcome.answer) return outcome;
      if (meets(preconditions, targetExists(known))) return outcome;
      const denied = entry('denied', { reason: 'a precondition of the request does not hold' });
      const message = 'A precondition of the request does not hold.';
      return refused('PRECONDITION_FAILED', message, outcome.entry === null ? null : denied);
    },
  };
}
