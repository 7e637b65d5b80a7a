/** Errors for requests without a route: 404 for an unknown path, 405 with `Allow` for a path with other methods. */
import type { FastifyReply } from 'fastify';
import { ApiError, invalidRequest } from '../engine/errors.ts';
import { ROUTES } from './routes/table.ts';

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
