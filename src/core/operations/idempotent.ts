/**
 * Doing once what is asked for more than once: an operation whose caller gave an Idempotency-Key. A success keeps its reply with
 * its own entry and changes, in the one transaction; a repeat is told the same and does nothing, so that it has no entry:
 * the first one's stands in the log. A refusal is not kept: it is decided anew.
 */
import { actorId, identify } from '../agent.ts';
import { ApiError } from '../errors.ts';
import {
  IDEMPOTENCY_TTL_MS,
  type IdempotencyRecord,
  idempotencyKeyReused,
  type JsonSerializable,
} from '../idempotency.ts';
import { type Context, type Operation, refused, succeeded } from '../operation.ts';

/** Nothing where the reply can be kept, and what no operation is where it can't. */
type Replayable<R> = [R] extends [JsonSerializable<R>] ? unknown : never;

/** The operation as it is for a caller who gave no key. */
export function withIdempotency<R>(context: Context, operation: Operation<R> & Replayable<R>): Operation<R> {
  const { idempotency, authentication } = context;
  if (idempotency === undefined) return operation;
  const { id, requestMac } = idempotency;
  return {
    ...operation,
    reads: { ...operation.reads, idempotency: id },
    decide(known, moment) {
      // A repeat is for who could ask anew: a session that has ended is told nothing again.
      const caller = identify(known, authentication, moment.now);
      if (caller instanceof ApiError) return refused(caller.code, caller.message, null);
      const agentId = actorId(caller);
      const kept = known.keptReply(id);
      if (kept !== null && kept.agentId === agentId && moment.now < kept.expiresAt) {
        if (kept.requestMac !== requestMac) {
          const fault = idempotencyKeyReused();
          return refused(fault.code, fault.message, null);
        }
        // The same request is the same operation: what it replied is an R.
        return succeeded(JSON.parse(kept.reply) as R, null);
      }
      const outcome = operation.decide(known, moment);
      // What lends a value is decided anew each time.
      if ('fault' in outcome.answer || outcome.unseal !== null) return outcome;
      const reply: IdempotencyRecord = {
        id,
        agentId,
        requestMac,
        reply: JSON.stringify(outcome.answer.reply),
        expiresAt: moment.now + IDEMPOTENCY_TTL_MS,
      };
      return { ...outcome, changes: [...outcome.changes, { kind: 'keepReply', reply }] };
    },
  };
}
