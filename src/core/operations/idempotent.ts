/**
 * Doing once what is asked for more than once: an operation whose caller gave an Idempotency-Key. A success keeps its reply with
 * its own entry and changes, in the one transaction; a repeat is told the same and does nothing, so that it has no entry:
 * the first one's stands in the log. A refusal is not kept: it is decided anew.
 */
import { actorId, identify } from '../agent.ts';
import { Fault } from '../errors.ts';
import { type Keepable, type KeptReply, keyReused, REPLIES_KEPT_MS } from '../idempotency.ts';
import { type Context, type Operation, refused, succeeded } from '../operation.ts';

/** Nothing where the reply can be kept, and what no operation is where it can't. */
type KeepingReply<R> = [R] extends [Keepable<R>] ? unknown : never;

/** The operation as it is for a caller who gave no key. */
export function idempotent<R>(context: Context, operation: Operation<R> & KeepingReply<R>): Operation<R> {
  const { idempotency, presented } = context;
  if (idempotency === undefined) return operation;
  const { id, requestMac } = idempotency;
  return {
    ...operation,
    keys: { ...operation.keys, idempotency: id },
    decide(known, moment) {
      // A repeat is for who could ask anew: a session that has ended is told nothing again.
      const caller = identify(known, presented, moment.now);
      if (caller instanceof Fault) return refused(caller.code, caller.message, null);
      const agentId = actorId(caller);
      const kept = known.keptReply(id);
      if (kept !== null && kept.agentId === agentId && moment.now < kept.expiresAt) {
        if (kept.requestMac !== requestMac) {
          const fault = keyReused();
          return refused(fault.code, fault.message, null);
        }
        // The same request is the same operation: what it replied is an R.
        return succeeded(JSON.parse(kept.reply) as R, null);
      }
      const outcome = operation.decide(known, moment);
      // What lends a value is decided anew each time.
      if ('fault' in outcome.answer || outcome.opening !== null) return outcome;
      const reply: KeptReply = {
        id,
        agentId,
        requestMac,
        reply: JSON.stringify(outcome.answer.reply),
        expiresAt: moment.now + REPLIES_KEPT_MS,
      };
      return { ...outcome, changes: [...outcome.changes, { kind: 'keepReply', reply }] };
    },
  };
}
