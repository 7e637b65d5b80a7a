/**
 * An operation: one pure, synchronous function from the known state, the caller and the time to an outcome. It does no
 * I/O and reads no clock. A rejection is an outcome like any other, so that it is recorded.
 */
import { draftEntry, type EntryDraft, type UseFields } from '../vault/audit/audit-entry.ts';
import type { AssociatedData, EncryptedValue, Secret } from '../vault/credentials/credential.ts';
import type { BatchState, ReadSet } from './batch-state.ts';
import { type Change, putRow } from './change.ts';
import { type Denial, errorOf } from './denials.ts';
import { IDEMPOTENCY_TTL_MS, type Idempotency, type IdempotencyRecord, type JsonSerializable } from './idempotency.ts';
import { type AuthContext, actorId, actorName, type Identity, identify, type OperationAuth } from './identity.ts';
import type { AgentId, EntryId } from './names.ts';
import { eventOf, lackOfPermission, type Permission } from './permissions.ts';

interface DecisionPoint {
  /** Milliseconds since 1970; never below the last entry's. */
  readonly now: number;
  /** The sequence number of this decision's entry, if it is recorded. */
  readonly seq: number;
  /** The id of that entry. An intent returns it, so that the entry of its result can have the same id. */
  readonly entryId: EntryId;
  /** Returns a new UUIDv7. */
  newId(): string;
}

/** The data of a request that every operation needs. */
export interface Context {
  readonly auth: AuthContext;
  readonly requestId: string;
  readonly remoteAddr: string | null;
  readonly idempotency?: Idempotency;
  /**
   * Whether the target, null if it does not exist, meets the request's If-Match and If-None-Match. WHY here: if two
   * operators change the same state at once, only one of them succeeds. SOURCE: RFC 9110, section 13.
   */
  readonly precondition?: (target: object | null) => boolean;
}

/** A value to decrypt after the decision and before chaining. */
export interface PendingDecryption<R> {
  readonly content: EncryptedValue | Secret;
  readonly associatedData: AssociatedData;
  onFailure(): Outcome<never>;
  /** The outcome for a value that must not be used; null for any other. */
  reject?(value: Secret): Outcome<never> | null;
  reply(value: Secret): R;
}

export interface Outcome<R> {
  readonly response: { readonly reply: R } | { readonly decrypt: PendingDecryption<R> } | { readonly denial: Denial };
  /** Null if the outcome is not recorded. */
  readonly entry: EntryDraft | null;
  readonly changes: readonly Change[];
}

export interface Operation<R> {
  readonly reads: ReadSet;
  readonly auth: OperationAuth;
  decide(known: BatchState, moment: DecisionPoint): Outcome<R>;
}

/** `unknown` for a type whose values JSON restores, `never` for other types. */
export type Replayable<R> = [R] extends [JsonSerializable<R>] ? unknown : never;

/**
 * An outcome with a reply. A reply is plain data; a value comes only from `decrypt`, which is never saved for a retry.
 */
export function succeeded<R>(
  reply: R & Replayable<R>,
  entry: EntryDraft | null,
  changes: readonly Change[] = [],
): Outcome<R> {
  return { response: { reply }, entry, changes };
}

/** An outcome with a denial. The caller makes its entry; null if it is not recorded. */
export function rejected(denial: Denial, entry: EntryDraft | null, changes: readonly Change[] = []): Outcome<never> {
  return { response: { denial }, entry, changes };
}

export function denied(
  { entry }: Pick<OperationInput, 'entry'>,
  denial: Denial,
  details: Omit<EntryDetails, 'reason'> = {},
  changes: readonly Change[] = [],
): Outcome<never> {
  return rejected(denial, entry(denial, details), changes);
}

interface EntryDetails {
  readonly resource?: string;
  readonly policyName?: string | null;
  readonly leaseId?: string | null;
  readonly reason?: string | null;
  readonly completes?: EntryId;
  readonly use?: Partial<UseFields>;
}

/** The input of a decision: the identified caller, the state, the time, and a constructor of entries. */
export interface OperationInput {
  readonly identity: Identity;
  readonly state: BatchState;
  readonly moment: DecisionPoint;
  entry(result: EntryDraft['result'], details?: EntryDetails): EntryDraft;
}

interface OperationSpec {
  readonly context: Context;
  readonly permission: Permission;
  readonly resource: string;
  readonly reads?: ReadSet;
  /** The resource whose entity tag the request's precondition compares; null if it does not exist. */
  readonly target?: (known: BatchState) => object | null;
}

/**
 * Builds an operation whose caller is identified within the batch. It rejects a caller without the permission, checks
 * the request's precondition, and runs a request with an Idempotency-Key only once.
 */
export function operation<R>(spec: OperationSpec, decide: (input: OperationInput) => Outcome<R>): Operation<R> {
  const { context, reads = {} } = spec;
  const { auth, idempotency } = context;
  return {
    reads: {
      ...reads,
      ...authReads(auth),
      ...(idempotency === undefined ? {} : { reply: idempotency.id }),
    },
    auth,
    decide(known, moment) {
      // ORDER: the caller of a repeated request is identified first, so that an ended session receives no previous
      // reply.
      const identity = identify(known, auth, moment.now);
      if ('code' in identity) return rejected(identity, null);
      if (idempotency === undefined) return decideOnce(spec, decide, identity, known, moment);
      const agentId = actorId(identity);
      return (
        repeated<R>(idempotency, agentId, known, moment) ??
        saved(idempotency, agentId, decideOnce(spec, decide, identity, known, moment), moment)
      );
    },
  };
}

export function authReads(auth: AuthContext): Pick<ReadSet, 'session' | 'leaseToken'> {
  if (auth.kind === 'admin') return {};
  const { kind, tokenHash } = auth;
  return kind === 'lease' ? { leaseToken: tokenHash } : { session: tokenHash };
}

function decideOnce<R>(
  { context, permission, resource, target }: OperationSpec,
  decide: (input: OperationInput) => Outcome<R>,
  identity: Identity,
  known: BatchState,
  moment: DecisionPoint,
): Outcome<R> {
  const { requestId, remoteAddr } = context;
  const eventType = eventOf(permission);
  const entry: OperationInput['entry'] = (result, details = {}) =>
    draftEntry({ eventType, agentName: actorName(identity), resource, result, requestId, remoteAddr, ...details });
  const lack = lackOfPermission(permission, identity);
  if (lack !== null) return denied({ entry }, lack);
  const outcome = decide({ identity, state: known, moment, entry });
  const { precondition } = context;
  if (precondition === undefined) return outcome;
  const current = target?.(known) ?? null;
  // An operation that names no target meets no precondition, so that it never overwrites a change that nobody saw.
  const isMet = target !== undefined && precondition(current);
  // ORDER: a caller that may not make the request learns nothing about its target. A caller that may make it receives
  // the same code whether the target that it read was deleted or changed.
  const { response } = outcome;
  if ('denial' in response && !(current === null && errorOf(response.denial) === 'NOT_FOUND')) return outcome;
  if (isMet) return outcome;
  // WHY not for agents: an agent that may write targets may lack the permission to read them.
  const isShown = identity.kind === 'admin' || identity.kind === 'operator';
  const denial: Denial = { code: 'precondition_failed', current: isShown ? current : undefined };
  return rejected(denial, outcome.entry === null ? null : entry(denial));
}

/**
 * The outcome of a repeated request: the reply in the idempotency record, no change and no entry. Null for a request
 * that is not a repeat.
 */
function repeated<R>(
  { id, requestMac }: Idempotency,
  agentId: AgentId,
  known: BatchState,
  { now }: DecisionPoint,
): Outcome<R> | null {
  const record = known.idempotencyRecord(id);
  if (record === null || record.agentId !== agentId || now >= record.expiresAt) return null;
  if (record.requestMac !== requestMac) return rejected({ code: 'idempotency_key_reused' }, null);
  // The same request is the same operation, so the recorded reply is an R.
  return { response: { reply: JSON.parse(record.reply) as R }, entry: null, changes: [] };
}

/**
 * Adds an idempotency record to a successful outcome. Rejections and values are not saved, so a retry of such a request
 * is decided again.
 */
function saved<R>(
  { id, requestMac }: Idempotency,
  agentId: AgentId,
  outcome: Outcome<R>,
  { now }: DecisionPoint,
): Outcome<R> {
  if (!('reply' in outcome.response)) return outcome;
  const { reply } = outcome.response;
  const record: IdempotencyRecord = {
    id,
    agentId,
    requestMac,
    reply: JSON.stringify(reply),
    expiresAt: now + IDEMPOTENCY_TTL_MS,
  };
  return { ...outcome, changes: [...outcome.changes, putRow('reply', record)] };
}

/** Checks the permission, and records only a denial. The caller reads the store afterwards. */
export function authorize(context: Context, permission: Permission, resource = '*'): Operation<null> {
  return operation({ context, permission, resource }, () => succeeded(null, null));
}
