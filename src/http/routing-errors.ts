/** Errors for requests without a route: 404 for an unknown path, 405 with `Allow` for a path with other methods. */
import type { FastifyReply } from 'fastify';
import { ApiError } from '../core/errors.ts';
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
 * Whether the literal parts of a route are percent-encoded, which the router would decode. Such a request is rejected.
 */
export function isEncodedRoute(target: string, method: string): boolean {
  const [path = ''] = target.split('?', 1);
  return path.includes('%') && !ADDRESSES.some((address) => address.method === method && address.matcher.test(path));
}

/** HEAD is not a method of any route, so that it never retrieves a value. */
export function routingError(target: string, reply: FastifyReply): ApiError {
  const [path = ''] = target.split('?', 1);
  const methods = ADDRESSES.filter(({ matcher }) => matcher.test(path)).map(({ method }) => method);
  if (methods.length === 0)
    return new ApiError('NOT_FOUND', 'No route has this path; GET /openapi.json lists all routes.');
  const allow = methods.join(', ');
  reply.header('allow', allow);
  return new ApiError('METHOD_NOT_ALLOWED', `The allowed methods of this path are ${allow}.`);
}
