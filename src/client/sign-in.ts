/** Calls that sign an operator in to the console, in a browser. SOURCE: docs/operators.md, "Signing in". */
import { type CallOptions, Calls } from './api-client.ts';
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

/** WHY never repeated: a challenge, a code and a state work once. */
export class SignIn extends Calls {
  methods(options: CallOptions = {}): Promise<SignInMethods> {
    return this.api.read(`${AUTH}/methods`, {}, options);
  }

  /** Splits the token in use: the response sets one half as a cookie, and `session_part` is the other half. */
  async openBrowser({ signal }: CallOptions = {}): Promise<BrowserSession> {
    // WHY the credentials: without them a browser rejects the cookie.
    const cookies = { credentials: 'same-origin' } as const;
    const spec = { method: 'POST', path: `${AUTH}/browser`, body: {}, retry: 'never', signal, ...cookies } as const;
    return (await this.api.ask<BrowserSession>(spec)).data;
  }

  passkeyOptions(options: CallOptions = {}): Promise<AssertionOptions> {
    return this.#post('passkey/options', {}, options);
  }

  verifyPasskey(body: AssertionRequest, options: CallOptions = {}): Promise<BrowserSession> {
    return this.#post('passkey/verify', body, options);
  }

  registrationOptions(body: RegistrationOptionsRequest, options: CallOptions = {}): Promise<RegistrationOptions> {
    return this.#post('passkey/register-options', body, options);
  }

  registerPasskey(body: RegistrationRequest, options: CallOptions = {}): Promise<Passkey> {
    return this.#post('passkey/register', body, options);
  }

  oidcOptions(options: CallOptions = {}): Promise<OidcOptions> {
    return this.#post('oidc/options', {}, options);
  }

  verifyOidc(body: OidcRequest, options: CallOptions = {}): Promise<BrowserSession> {
    return this.#post('oidc/verify', body, options);
  }

  issueHandoff(options: CallOptions = {}): Promise<OneTimeCode> {
    return this.#post('handoff', {}, options);
  }

  redeemHandoff(code: string, options: CallOptions = {}): Promise<BrowserSession> {
    return this.#post('handoff/redeem', { code }, options);
  }

  #post<T>(path: string, body: object, options: CallOptions): Promise<T> {
    return this.api.post(`${AUTH}/${path}`, body, options, 'never');
  }
}
