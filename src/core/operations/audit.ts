/** Operations on the audit log. Its entries are read after the decision whether the caller may. */
import { type Context, type Operation, operation, succeeded } from '../operation.ts';
import { adminOperation, adminRead } from './admin-read.ts';

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
