/**
 * Operations that only the administrator may call. A rejected agent is recorded. SOURCE: docs/decisions.md, "Requests".
 */
import { ApiError } from '../../engine/errors.ts';
import type { EventType } from '../audit.ts';
import type { BatchState } from '../batch-state.ts';
import { type Context, type Operation, operation, type Replayable, rejected, succeeded } from '../operation.ts';

interface AdminSpec {
  readonly context: Context;
  readonly event: EventType;
  readonly requiredRole: 'admin';
}

export function adminOperation<Input extends readonly unknown[], R>(
  event: EventType,
  build: (spec: AdminSpec, ...input: Input) => Operation<R>,
): (context: Context, ...input: Input) => Operation<R> {
  return (context, ...input) => build({ context, event, requiredRole: 'admin' }, ...input);
}

/** A read, which is not recorded. Replies with what `read` returns; an error that it returns rejects the request. */
export function adminRead<R>(
  spec: AdminSpec,
  resource: string,
  read: (known: BatchState) => (R & Replayable<R>) | ApiError,
): Operation<R> {
  const target = (known: BatchState): object | null => {
    const seen = read(known);
    return seen instanceof ApiError ? null : Object(seen);
  };
  return operation({ ...spec, resource, target }, ({ state }) => {
    const seen = read(state);
    return seen instanceof ApiError ? rejected(seen.code, seen.message, null) : succeeded<R>(seen, null);
  });
}

/** Rejects an agent before its request is read, and records the event; succeeds for the administrator. */
export function requireAdmin(context: Context, event: EventType, resource: string): Operation<null> {
  return adminRead({ context, event, requiredRole: 'admin' }, resource, () => null);
}

export const listAudit = adminOperation('audit.list', (spec) => adminRead(spec, '*', () => null));
export const verifyAudit = adminOperation('audit.verify', (spec) => adminRead(spec, '*', () => null));
export const readAuditCheckpoint = adminOperation('audit.checkpoint', (spec) => adminRead(spec, '*', () => null));
export const readAuditProof = adminOperation('audit.proof', (spec) => adminRead(spec, '*', () => null));
export const exportAudit = adminOperation('audit.export', (spec) => adminRead(spec, '*', () => null));

/** `loss` is what the log has lost, in one sentence. */
export function acceptRollback(context: Context, loss: string): Operation<null> {
  const spec = { context, event: 'audit.accept_rollback', resource: '*', requiredRole: 'admin' } as const;
  return operation<null>(spec, ({ entry }) => succeeded(null, entry('allowed', { reason: loss })));
}

/** Attention, activity, nodes and search. */
export const readOverview = adminOperation('service.read', (spec) => adminRead(spec, '*', () => null));
export const readMatrix = adminOperation('policy.simulate', (spec) => adminRead(spec, '*', () => null));
export const readTree = adminOperation('credential.list', (spec) => adminRead(spec, '*', () => null));
