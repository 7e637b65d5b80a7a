/** Operations that only the administrator may call. A rejected agent is recorded. SOURCE: decisions, "Audit". */
import type { EventType } from '../audit.ts';
import type { BatchState } from '../batch-state.ts';
import { ApiError } from '../errors.ts';
import { type Context, type Operation, operation, type Replayable, rejected, succeeded } from '../operation.ts';

interface AdminSpec {
  readonly context: Context;
  readonly event: EventType;
  readonly requiredRole: 'admin';
}

/** An operation that names its event, so that an agent can be rejected before its request is read. */
export interface AdminOperation {
  readonly event: EventType;
}

/** Returns the constructor of an operation, which carries the event. */
export function adminOperation<Input extends readonly unknown[], R>(
  event: EventType,
  build: (spec: AdminSpec, ...input: Input) => Operation<R>,
): AdminOperation & ((context: Context, ...input: Input) => Operation<R>) {
  const construct = (context: Context, ...input: Input): Operation<R> =>
    build({ context, event, requiredRole: 'admin' }, ...input);
  return Object.assign(construct, { event });
}

/** A read, which is not recorded. Replies with what `read` returns; an error that it returns rejects the request. */
export function adminRead<R>(
  spec: AdminSpec,
  resource: string,
  read: (known: BatchState) => (R & Replayable<R>) | ApiError,
): Operation<R> {
  return operation({ ...spec, resource }, ({ state }) => {
    const seen = read(state);
    return seen instanceof ApiError ? rejected(seen.code, seen.message, null) : succeeded<R>(seen, null);
  });
}

/** Rejects an agent at the operation before its request is read; succeeds for the administrator. */
export function requireAdmin(context: Context, { event }: AdminOperation, resource: string): Operation<null> {
  return adminRead({ context, event, requiredRole: 'admin' }, resource, () => null);
}
