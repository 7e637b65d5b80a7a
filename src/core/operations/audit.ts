/** Access to the audit log: whether the caller may read it. The entries are read after the decision. */
import { adminOperation, adminRead } from './admin-read.ts';

export const listAudit = adminOperation('audit.list', (spec) => adminRead(spec, '*', () => null));
export const verifyAudit = adminOperation('audit.verify', (spec) => adminRead(spec, '*', () => null));
export const exportAudit = adminOperation('audit.export', (spec) => adminRead(spec, '*', () => null));
