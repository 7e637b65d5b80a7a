/**
 * Who may read the metrics: a client with the metrics token; without such a token, a client on this machine. SOURCE:
 * docs/monitoring.md, "Who may read them".
 */
import { ApiError } from '../core/errors.ts';
import type { TokenHash } from '../core/names.ts';
import { timingSafeEqualText } from '../crypto/primitives.ts';
import { hashToken } from '../crypto/tokens.ts';

/**
 * `isLocal`: a client of this machine, through no proxy. `tokenHash`: null without a metrics token.
 * @throws UNAUTHENTICATED, ACCESS_DENIED
 */
export function authorizeScrape(
  authorization: string | undefined,
  isLocal: boolean,
  tokenHash: TokenHash | null,
): void {
  if (tokenHash === null) {
    if (isLocal) return;
    const message =
      'Metrics are served without a token to clients on the same machine only, over a Unix socket or a loopback listener without --public-name and --trusted-proxy. Start the server with --metrics-token-file to serve others.';
    throw new ApiError('ACCESS_DENIED', message);
  }
  const token = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(authorization ?? '')?.[1] ?? '';
  if (timingSafeEqualText(hashToken(token), tokenHash)) return;
  throw new ApiError('UNAUTHENTICATED', 'Send the metrics token in the header Authorization: Bearer <token>.');
}
