/**
 * The origin of the console's pages. Passkeys are bound to it, and the identity provider sends its codes to it, so it
 * must be one that only this service can have: a page on another port of the host could otherwise ask a person for a
 * signature, or get a code, and use it here.
 * SOURCE: WebAuthn, level 3, section 13.4.9.
 */
import type { FastifyRequest } from 'fastify';
import { ApiError, invalidRequest } from '../core/errors.ts';
import type { WebOrigin } from '../vault/passkeys.ts';

/** The address of the service as the caller named it. @throws INVALID_REQUEST */
export function serviceUrlOf({ protocol, host }: FastifyRequest): string {
  if (!/^[A-Za-z0-9.:_[\]-]{1,260}$/.test(host)) throw invalidRequest('Host', 'must be a name or an address');
  return `${protocol}://${host}`;
}

/** The origin at which passkeys and the identity provider work; null at any other address of the service. */
export function passkeyOrigin(request: FastifyRequest, publicNames: ReadonlySet<string>): WebOrigin | null {
  const url = URL.parse(serviceUrlOf(request));
  if (url === null) return null;
  const { hostname, origin, port, protocol } = url;
  const standardPort = protocol === 'https:' ? 443 : 80;
  const isListener = Number(port || standardPort) === request.socket.localPort;
  // Browsers treat plain HTTP as secure for this name alone.
  const isLocal = hostname === 'localhost' && isListener;
  const isPublic = protocol === 'https:' && publicNames.has(hostname) && (port === '' || isListener);
  return isLocal || isPublic ? { origin, rpId: hostname } : null;
}

/** As `passkeyOrigin`. @throws INVALID_REQUEST */
export function requirePasskeyOrigin(request: FastifyRequest, publicNames: ReadonlySet<string>): WebOrigin {
  const found = passkeyOrigin(request, publicNames);
  if (found !== null) return found;
  const { localPort } = request.socket;
  const local = localPort === undefined ? '' : ` ${request.protocol}://localhost:${localPort}/console/, or`;
  const names = ' HTTPS and a name given with --public-name, at its standard port or the one of the service';
  throw new ApiError(
    'INVALID_REQUEST',
    `Host: passkeys and the identity provider do not work at this address. Use${local}${names}.`,
  );
}
