/** The overview lists. What they show is read after the decision whether the caller may. */
import { adminOperation, adminRead } from './admin-read.ts';

/** Attention, activity, nodes and search. */
export const readOverview = adminOperation('service.read', (spec) => adminRead(spec, '*', () => null));
export const readMatrix = adminOperation('policy.simulate', (spec) => adminRead(spec, '*', () => null));
export const readTree = adminOperation('credential.list', (spec) => adminRead(spec, '*', () => null));
