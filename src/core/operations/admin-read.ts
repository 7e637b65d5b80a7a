/** Reads of the administrator. They are not recorded; an agent that tries one is rejected and recorded. SOURCE: decisions, "Audit". */
import type { EventType } from '../audit.ts';
import type { BatchState } from '../batch-state.ts';
import { ApiError } from '../errors.ts';
import { type Context, type Operation, operation, type Replayable, refused, succeeded } from '../operation.ts';

/** Replies what `read` returns; an error that it returns rejects the request. */
export function adminRead<R>(
  context: Context,
  event: EventType,
  resource: string,
  read: (known: BatchState) => (R & Replayable<R>) | ApiError,
): Operation<R> {
  return operation({ context, event, resource, requiredRole: 'admin' }, ({ state }) => {
    const seen = read(state);
    return seen instanceof ApiError ? refused(seen.code, seen.message, null) : succeeded<R>(seen, null);
  });
}
