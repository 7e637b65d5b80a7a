/** The interface to a provider of OpenID Connect. */
import type { IdentityClaims } from '../core/operator.ts';

/** What a sign-in at the provider is bound to. */
export interface ProviderRequest {
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE. */
  readonly verifier: string;
}

/** The provider, which may be out of reach at any time. */
export interface OidcClient {
  readonly issuer: string;
  /** For people. */
  readonly label: string;
  /** Where the browser goes. @throws UNAVAILABLE */
  authorizationUrl(request: ProviderRequest): Promise<string>;
  /** Redeems the code. Null if the provider or a check rejects it. @throws UNAVAILABLE */
  redeem(request: ProviderRequest, code: string): Promise<IdentityClaims | null>;
}
