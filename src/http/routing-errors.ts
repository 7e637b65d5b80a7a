/** What no row of the table answers: 404 for an address that does not exist, 405 with `Allow` for one that takes other methods. */
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

/** The router decodes before it matches; a route's own words have one spelling. */
export function isEncodedRoute(target: string, method: string): boolean {
  const [path = ''] = target.split('?', 1);
  return path.includes('%') && !ADDRESSES.some((address) => address.method === method && address.matcher.test(path));
}

/** HEAD is among the methods that no address takes, so that it never retrieves. */
export function routingError(target: string, reply: FastifyReply): ApiError {
  const [path = ''] = target.split('?', 1);
  const methods = ADDRESSES.filter(({ matcher }) => matcher.test(path)).map(({ method }) => method);
  if (methods.length === 0) return new ApiError('NOT_FOUND', 'There is no such address; GET /openapi.json lists them.');
  const allow = methods.join(', ');
  reply.header('allow', allow);
  return new ApiError('METHOD_NOT_ALLOWED', `This address takes ${allow}.`);
}
