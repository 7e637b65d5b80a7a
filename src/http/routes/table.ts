/** The route table: every route of the server, by subject. */
import type { Route, RouteGroup } from '../route.ts';
import { agentRoutes } from './agents.ts';
import { approvalRoutes } from './approvals.ts';
import { auditRoutes } from './audit.ts';
import { credentialRoutes } from './credentials.ts';
import { exposureRoutes } from './exposure.ts';
import { keyRoutes } from './keys.ts';
import { leaseRoutes } from './leases.ts';
import { operatorRoutes } from './operators.ts';
import { overviewRoutes } from './overview.ts';
import { policyRoutes } from './policies.ts';
import { aboutRoutes, backupRoutes, monitoringRoutes } from './server.ts';
import { sessionRoutes } from './sessions.ts';
import { signInRoutes } from './sign-in.ts';
import { targetRoutes } from './targets.ts';
import { useRoutes } from './use.ts';

const GROUPS: readonly RouteGroup[] = [
  { tag: 'Credentials', description: 'Store values, and retrieve them with a lease.', routes: credentialRoutes },
  { tag: 'Targets', description: 'Say where a credential may be used, and how.', routes: targetRoutes },
  { tag: 'Use', description: 'Use credentials without seeing them.', routes: useRoutes },
  { tag: 'Policies', description: 'Grant agents actions on paths, and simulate decisions.', routes: policyRoutes },
  { tag: 'Agents', description: 'Register the agents that may log in.', routes: agentRoutes },
  { tag: 'Operators', description: 'The people who run the vault, and their roles.', routes: operatorRoutes },
  {
    tag: 'Authentication',
    description: 'Log an agent or an operator in by a challenge and a signature.',
    routes: sessionRoutes,
  },
  { tag: 'Approvals', description: 'What people have to allow, and their answers.', routes: approvalRoutes },
  { tag: 'Sign-in', description: 'Sign an operator in to the console, in a browser.', routes: signInRoutes },
  { tag: 'Leases', description: 'List, read, renew and revoke leases.', routes: leaseRoutes },
  { tag: 'Exposure', description: 'Find out who has seen values, and end everything.', routes: exposureRoutes },
  {
    tag: 'Audit',
    description: 'Read, count, verify and export the audit log.',
    routes: auditRoutes,
  },
  { tag: 'Overview', description: 'See the vault as a whole.', routes: overviewRoutes },
  { tag: 'Keys', description: 'Key slots, rotation of keys, and locking the vault.', routes: keyRoutes },
  { tag: 'Monitoring', description: 'Metrics and probes.', routes: monitoringRoutes },
  { tag: 'Backup', description: 'Take a backup of the vault while it is in use.', routes: backupRoutes },
  { tag: 'Server', description: 'The server itself.', routes: aboutRoutes(() => GROUPS) },
];

export const ROUTES: readonly Route[] = GROUPS.flatMap(({ routes }) => routes);
