/**
 * The route table: every route of the server, by subject, and the errors of requests without a route: 404 for an
 * unknown path, 405 with `Allow` for a path with other methods.
 */
import type { FastifyReply } from 'fastify';
import { ApiError, invalidRequest } from '../../engine/errors.ts';
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
import { sessionRoutes, signInRoutes } from './sessions.ts';
import { targetRoutes } from './targets.ts';
import { useRoutes } from './use.ts';

const GROUPS: readonly RouteGroup[] = [
  { tag: 'Credentials', description: 'Store values, and retrieve them with a lease.', routes: credentialRoutes },
  { tag: 'Targets', description: 'Say where a credential may be used, and how.', routes: targetRoutes },
  { tag: 'Use', description: 'Use credentials without seeing them.', routes: useRoutes },
  { tag: 'Policies', description: 'Grant agents actions on paths, and simulate decisions.', routes: policyRoutes },
  { tag: 'Agents', description: 'Register the agents that may log in.', routes: agentRoutes },
  { tag: 'Operators', description: 'Operators of the vault, and their roles.', routes: operatorRoutes },
  {
    tag: 'Authentication',
    description: 'Log an agent or an operator in by a challenge and a signature.',
    routes: sessionRoutes,
  },
  { tag: 'Approvals', description: 'Requests that operators approve or deny.', routes: approvalRoutes },
  { tag: 'Sign-in', description: 'Sign an operator in to the console, in a browser.', routes: signInRoutes },
  { tag: 'Leases', description: 'List, read, renew and revoke leases.', routes: leaseRoutes },
  { tag: 'Exposure', description: 'List who has seen values, and end all access.', routes: exposureRoutes },
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

interface Address {
  readonly matcher: RegExp;
  readonly method: string;
}

function toAddress(path: string, method: string): Address {
  const pattern = path
    .replaceAll(/[.]/g, '\\.')
    .replace('{path}', '.+')
    .replaceAll(/\{\w+\}/g, '[^/]+');
  return { matcher: new RegExp(`^${pattern}$`), method };
}

const ADDRESSES: readonly Address[] = ROUTES.flatMap((row) =>
  [row.path, ...row.aliases].map((path) => toAddress(path, row.method)),
);

/**
 * Whether only the router takes the target for one of a route: it decodes percent-encoded literal parts, and accepts an
 * empty parameter. Such a request is rejected.
 */
export function isInexactTarget(target: string, method: string): boolean {
  const [path = ''] = target.split('?', 1);
  return (
    path !== '/' &&
    (path.includes('%') || path.endsWith('/')) &&
    !ADDRESSES.some((address) => address.method === method && address.matcher.test(path))
  );
}

/** HEAD is not a method of any route, so that it never retrieves a value. */
export function routingError(target: string, reply: FastifyReply): ApiError {
  const [path = ''] = target.split('?', 1);
  const methods = methodsOf(path);
  if (methods.length === 0) {
    if (path.endsWith('/') && methodsOf(path.slice(0, -1)).length > 0)
      return invalidRequest('target', 'must not end with a slash: remove it');
    return new ApiError('NOT_FOUND', 'No route has this path; GET /openapi.json lists all routes.');
  }
  const allow = methods.join(', ');
  reply.header('allow', allow);
  return new ApiError('METHOD_NOT_ALLOWED', `The allowed methods of this path are ${allow}.`);
}

const methodsOf = (path: string): string[] =>
  ADDRESSES.filter(({ matcher }) => matcher.test(path)).map(({ method }) => method);
