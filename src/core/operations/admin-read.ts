/** The administrator's reads, which are not recorded; an agent that tries them is refused, and that is. SOURCE: decisions, "Audit". */
import type { EventType } from '../audit.ts';
import type { BatchState } from '../batch-state.ts';
import { ApiError } from '../errors.ts';
import { type Context, type Operation, operation, refused, succeeded } from '../operation.ts';

/** Replies what `read` sees; a fault that it returns is the answer. */
export function adminRead<R>(
  context: Context,
  event: EventType,
  resource: string,
  read: (known: BatchState) => R | ApiError,
): Operation<R> {
  return operation({ context, event, resource, requiredRole: 'admin' }, ({ state }) => {
    const seen = read(state);
    return seen instanceof ApiError ? refused(seen.code, seen.message, null) : succeeded(seen, null);
  });
}
