/**
 * The client of an OpenID Connect provider. The first sign-in requests the metadata, within a time limit. A provider
 * that does not respond fails only that sign-in. SOURCE: OpenID Connect Core 1.0, section 3.1; RFC 7636; RFC 9700.
 */
import type { CustomFetch, Configuration as ProviderConfiguration } from 'openid-client';
import { safeFetch } from '../client/node-fetch.ts';
import { ApiError } from '../engine/errors.ts';
import { StartupError } from '../platform/errors.ts';
import { readSecretBytes } from '../platform/private-files.ts';
import { Secret } from '../vault/credentials/credential.ts';
import type { IdentityClaims } from '../vault/operators/operator.ts';
import type { OidcClient, ProviderRequest } from '../vault/ports.ts';
import { isPrivateUrl, type OidcSettings } from './flag-values.ts';

const TIMEOUT_SECONDS = 10;
/** How long the provider's metadata is used before it is read again. */
const METADATA_LIFE_MS = 3_600_000;
/**
 * WHY: anyone can start a sign-in, and must not be able to make the server query an unavailable provider repeatedly.
 */
const RETRY_AFTER_MS = 5000;
const MAX_RESPONSE_BYTES = 1024 * 1024;
const SCOPE = 'openid email';
const SECRET = /^[\x21-\x7e]{1,512}$/;

const REJECTIONS = [
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
];

type Library = typeof import('openid-client');

export class ProviderClient implements OidcClient {
  readonly issuer: string;
  readonly label: string;
  readonly #clientId: string;
  readonly #secret: Secret | null;
  readonly #warn: (line: string) => void;
  #metadata: { readonly at: number; readonly found: Promise<ProviderConfiguration> } | null = null;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: OidcSettings, warn: (line: string) => void) {
    this.issuer = settings.issuer;
    this.label = settings.label;
    this.#clientId = settings.clientId;
    this.#secret = settings.secretFile === null ? null : readSecret(settings.secretFile);
    this.#warn = warn;
  }

  async authorizationUrl({ redirectUri, state, nonce, verifier }: ProviderRequest): Promise<string> {
    const library = await import('openid-client');
    const provider = await this.#discover(library);
    const challenge = await library.calculatePKCECodeChallenge(verifier);
    try {
      const url = library.buildAuthorizationUrl(provider, {
        redirect_uri: redirectUri,
        scope: SCOPE,
        state,
        nonce,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      });
      return url.href;
    } catch (error) {
      // The metadata contains no usable endpoint.
      throw this.#unavailable(error);
    }
  }

  async redeem({ redirectUri, state, nonce, verifier }: ProviderRequest, code: string): Promise<IdentityClaims | null> {
    const library = await import('openid-client');
    const provider = await this.#discover(library);
    const returned = new URL(redirectUri);
    returned.search = new URLSearchParams({ code, state }).toString();
    // WHY it is added: the console does not pass on `iss`. It tells providers apart, and there is only one.
    if (provider.serverMetadata()['authorization_response_iss_parameter_supported'] === true)
      returned.searchParams.set('iss', this.issuer);
    try {
      const tokens = await library.authorizationCodeGrant(provider, returned, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) return null;
      const { sub, email } = claims;
      return {
        issuer: this.issuer,
        subject: sub,
        email: typeof email === 'string' ? email : null,
        isEmailVerified: claims['email_verified'] === true,
      };
    } catch (error) {
      if (isRejection(library, error)) return null;
      throw this.#unavailable(error);
    }
  }

  /** The provider's metadata; all sign-ins share one request for it. @throws UNAVAILABLE */
  async #discover(library: Library): Promise<ProviderConfiguration> {
    const now = performance.now();
    if (now - this.#failedAt < RETRY_AFTER_MS) throw notAvailable();
    if (this.#metadata === null || now - this.#metadata.at > METADATA_LIFE_MS)
      this.#metadata = { at: now, found: this.#ask(library) };
    try {
      return await this.#metadata.found;
    } catch (error) {
      this.#metadata = null;
      this.#failedAt = performance.now();
      throw this.#unavailable(error);
    }
  }

  #ask(library: Library): Promise<ProviderConfiguration> {
    const issuer = new URL(this.issuer);
    // The configuration allows plain HTTP for this machine alone.
    const isPlain = issuer.protocol === 'http:';
    const secret = this.#secret;
    return library.discovery(
      issuer,
      this.#clientId,
      {},
      secret === null ? library.None() : library.ClientSecretBasic(secret.reveal()),
      {
        timeout: TIMEOUT_SECONDS,
        [library.customFetch]: fetchBounded,
        execute: [library.enableNonRepudiationChecks, ...(isPlain ? [library.allowInsecureRequests] : [])],
      },
    );
  }

  #unavailable(error: unknown): ApiError {
    // WHY not the message: it may repeat text from the provider or a browser.
    this.#warn(`the identity provider ${this.issuer} cannot be used: ${codeOf(error)}`);
    return notAvailable();
  }
}

/** Code of the error, or of the cause that the library has wrapped. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  return 'code' in error && typeof error.code === 'string' ? error.code : codeOf(error.cause);
}

function notAvailable(): ApiError {
  return new ApiError('UNAVAILABLE', 'The identity provider does not respond. Sign in otherwise, or try later.', 10);
}

/**
 * Rejects an endpoint in plain HTTP on another machine. WHY: for a provider on this machine the library allows plain
 * HTTP to every endpoint that its metadata name. A response that is longer than any valid one fails while it is read.
 */
const fetchBounded: CustomFetch = async (url, { body, ...options }) => {
  if (!isPrivateUrl(new URL(url))) {
    const message = 'an endpoint in its metadata is plain HTTP on another machine';
    throw Object.assign(new Error(message), { code: 'PLAIN_HTTP' });
  }
  const response = await safeFetch(url, { ...options, body: body ?? null });
  let length = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      length += chunk.length;
      if (length > MAX_RESPONSE_BYTES) controller.error(new Error('the response is too long'));
      else controller.enqueue(chunk);
    },
  });
  return new Response(response.body?.pipeThrough(limit) ?? null, response);
};

/** Whether the provider rejected the code, or its response failed a check. */
function isRejection(library: Library, error: unknown): boolean {
  if (error instanceof library.ResponseBodyError) return error.status < 500 && error.error !== 'invalid_client';
  if (error instanceof library.AuthorizationResponseError) return true;
  if (!(error instanceof library.ClientError)) return false;
  return REJECTIONS.includes(error.code ?? '');
}

function readSecret(file: string): Secret {
  const text = readSecretBytes(file)
    .toString('latin1')
    .replace(/\r?\n$/, '');
  if (SECRET.test(text)) return new Secret(text);
  throw new StartupError(`${file} must contain the client's secret alone, 1 to 512 visible ASCII characters.`);
}
