/** THE TABLE: every route of the service, in the order of the interface. What is not in it does not exist. */
import type { Route } from '../route.ts';
import { agentRoutes } from './agents.ts';
import { auditRoutes } from './audit.ts';
import { credentialRoutes } from './credentials.ts';
import { leaseRoutes } from './leases.ts';
import { policyRoutes } from './policies.ts';
import { sessionRoutes } from './sessions.ts';

export const ROUTES: readonly Route[] = [
  ...credentialRoutes,
  ...policyRoutes,
  ...agentRoutes,
  ...sessionRoutes,
  ...leaseRoutes,
  ...auditRoutes,
];
