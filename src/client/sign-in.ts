/** Calls that sign an operator in to the console, in a browser. SOURCE: docs/operators.md, "Signing in". */
import type { ApiClient, CallOptions } from './api-client.ts';
import { type Decoder, listOf, nullable, object } from './decoders.ts';
import type {
  AssertionOptions,
  AssertionRequest,
  BrowserSession,
  OidcOptions,
  OidcRequest,
  OneTimeCode,
  Passkey,
  RegistrationOptions,
  RegistrationOptionsRequest,
  RegistrationRequest,
  SignInMethods,
} from './types.ts';

const AUTH = '/api/v1/auth';

export const decodePasskey = object<Passkey>({
  id: 'text',
  label: 'text',
  synced: 'boolean',
  added_at: 'text',
});
const decodeMethods = object<SignInMethods>({
  passkey: 'boolean',
  oidc: nullable(object<NonNullable<SignInMethods['oidc']>>({ label: 'text' })),
  setup: 'boolean',
});
const decodeBrowserSession = object<BrowserSession>({
  agent_name: 'text',
  expires_at: 'text or null',
  expires_in: 'integer or null',
  session_part: 'text',
});
export const decodeOneTimeCode = object<OneTimeCode>({ code: 'text', expires_at: 'text' });
const decodeOidcOptions = object<OidcOptions>({ url: 'text', state: 'text' });
const decodeAssertionOptions = object<AssertionOptions>({
  challenge_id: 'text',
  options: object<AssertionOptions['options']>({
    challenge: 'text',
    rpId: 'text',
    timeout: 'integer',
    userVerification: 'text',
  }),
});
type Creation = RegistrationOptions['options'];
const decodeRegistrationOptions = object<RegistrationOptions>({
  challenge_id: 'text',
  options: object<Creation>({
    rp: object<Creation['rp']>({ id: 'text', name: 'text' }),
    user: object<Creation['user']>({ id: 'text', name: 'text', displayName: 'text' }),
    challenge: 'text',
    pubKeyCredParams: listOf(object<Creation['pubKeyCredParams'][number]>({ type: 'text', alg: 'integer' })),
    timeout: 'integer',
    excludeCredentials: listOf(
      object<Creation['excludeCredentials'][number]>({ type: 'text', id: 'text', transports: 'list of text' }),
    ),
    authenticatorSelection: object<Creation['authenticatorSelection']>({
      residentKey: 'text',
      requireResidentKey: 'boolean',
      userVerification: 'text',
    }),
    attestation: 'text',
  }),
});

/** WHY never repeated: a challenge, a code and a state work once. */
export class SignIn {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** How operators can sign in at this address. */
  methods(options: CallOptions = {}): Promise<SignInMethods> {
    return this.#api.read(`${AUTH}/methods`, {}, decodeMethods, options);
  }

  /** Splits the token in use: the response sets half of it as a cookie, and `session_part` is the other. */
  async openBrowser({ signal }: CallOptions = {}): Promise<BrowserSession> {
    // WHY the credentials: a browser accepts the cookie only with them.
    const cookies = { credentials: 'same-origin' } as const;
    const spec = { method: 'POST', path: `${AUTH}/browser`, body: {}, retry: 'never', signal, ...cookies } as const;
    return (await this.#api.ask(spec, decodeBrowserSession)).data;
  }

  passkeyOptions(options: CallOptions = {}): Promise<AssertionOptions> {
    return this.#post('passkey/options', {}, decodeAssertionOptions, options);
  }

  verifyPasskey(body: AssertionRequest, options: CallOptions = {}): Promise<BrowserSession> {
    return this.#post('passkey/verify', body, decodeBrowserSession, options);
  }

  registrationOptions(body: RegistrationOptionsRequest, options: CallOptions = {}): Promise<RegistrationOptions> {
    return this.#post('passkey/register-options', body, decodeRegistrationOptions, options);
  }

  registerPasskey(body: RegistrationRequest, options: CallOptions = {}): Promise<Passkey> {
    return this.#post('passkey/register', body, decodePasskey, options);
  }

  oidcOptions(options: CallOptions = {}): Promise<OidcOptions> {
    return this.#post('oidc/options', {}, decodeOidcOptions, options);
  }

  verifyOidc(body: OidcRequest, options: CallOptions = {}): Promise<BrowserSession> {
    return this.#post('oidc/verify', body, decodeBrowserSession, options);
  }

  /** A code that signs a browser in as the operator in use. */
  issueHandoff(options: CallOptions = {}): Promise<OneTimeCode> {
    return this.#post('handoff', {}, decodeOneTimeCode, options);
  }

  redeemHandoff(code: string, options: CallOptions = {}): Promise<BrowserSession> {
    return this.#post('handoff/redeem', { code }, decodeBrowserSession, options);
  }

  async #post<T>(path: string, body: object, decode: Decoder<T>, { signal }: CallOptions): Promise<T> {
    const spec = { method: 'POST', path: `${AUTH}/${path}`, body, retry: 'never', signal } as const;
    return (await this.#api.ask(spec, decode)).data;
  }
}
