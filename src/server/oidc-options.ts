/** The flags of a provider of OpenID Connect, checked before the service creates anything. */
import { UsageError } from '../platform/errors.ts';

export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  /** Null for a public client. */
  readonly secretFile: string | null;
  /** What the console writes on its button. */
  readonly label: string;
}

interface GivenFlags {
  readonly issuer: string | undefined;
  readonly clientId: string | undefined;
  readonly secretFile: string | null;
  readonly label: string | undefined;
}

const CLIENT_ID = /^[\x21-\x7e]{1,255}$/;
const LABEL = /^[^\p{C}]{1,64}$/u;

/** Null without a provider. @throws UsageError */
export function parseOidc(given: GivenFlags, isLoopbackHost: (host: string) => boolean): OidcSettings | null {
  const { issuer, clientId, secretFile, label } = given;
  if (issuer === undefined) {
    if (clientId === undefined && secretFile === null && label === undefined) return null;
    throw new UsageError('--oidc-client-id, --oidc-client-secret-file and --oidc-label need --oidc-issuer.');
  }
  const url = URL.parse(issuer);
  const isPrivate = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  if (url === null || !isPrivate || url.search !== '' || url.hash !== '' || url.username !== '')
    throw new UsageError('--oidc-issuer must be https://HOST or https://HOST/PATH; http:// only for this machine.');
  if (clientId === undefined || !CLIENT_ID.test(clientId))
    throw new UsageError('--oidc-issuer needs --oidc-client-id, 1 to 255 visible ASCII characters.');
  if (label !== undefined && !LABEL.test(label))
    throw new UsageError('--oidc-label must be 1 to 64 characters without control characters.');
  return { issuer, clientId, secretFile, label: label ?? url.host };
}
