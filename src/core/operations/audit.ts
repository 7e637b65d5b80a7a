/** Checks whether the caller may read the audit log. The entries are read after the decision. */
import { adminOperation, adminRead } from './admin-read.ts';

export const listAudit = adminOperation('audit.list', (spec) => adminRead(spec, '*', () => null));
export const verifyAudit = adminOperation('audit.verify', (spec) => adminRead(spec, '*', () => null));
export const exportAudit = adminOperation('audit.export', (spec) => adminRead(spec, '*', () => null));
