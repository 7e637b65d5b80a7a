/** A provider of OpenID Connect on loopback, at which anyone signs in as the account that the test names. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import type { Scope } from './directory.ts';

interface Account {
  readonly subject: string;
  readonly email?: string;
  readonly isVerified?: boolean;
}

export interface TestProvider {
  readonly issuer: string;
  readonly flags: readonly string[];
  /** The client may return to the address. */
  allow(redirectUri: string): void;
  /** Signs the account in at the URL, as a browser would; resolves to the query of the return. */
  visit(url: string, account: Account): Promise<{ code: string; state: string }>;
  /** ID tokens are faulty from now on. */
  break(fault: Fault): void;
  /** Requests that reached the provider, by path. */
  readonly seen: readonly string[];
  stop(): Promise<void>;
}

const CLIENT_ID = 'leasehold';

/** What is wrong with the ID tokens that the provider issues. */
interface Fault {
  readonly audience?: string;
  readonly nonce?: string;
  /** Seconds since 1970. */
  readonly expiresAt?: number;
  readonly hasOtherSignature?: true;
}

interface IssuedToken {
  client: object;
  set(claim: string, value: unknown): void;
  issue(options: { use: string; expiresAt?: number }): Promise<string>;
}

export async function startProvider(scope: Scope): Promise<TestProvider> {
  let fault: Fault = {};
  const seen: string[] = [];
  const redirects = new Set<string>();
  let account: Account = { subject: 'none' };
  const server = createServer((request, response) => {
    seen.push((request.url ?? '').replace(/\?.*/, ''));
    // A header named as a member of objects changes nothing in any sign-in.
    response.setHeader('__proto__', 'x');
    void handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        token_endpoint_auth_method: 'none',
        redirect_uris: ['http://localhost/console/callback'],
        application_type: 'native',
      },
    ],
    cookies: { keys: ['of a test'] },
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        ...(account.email === undefined ? {} : { email: account.email, email_verified: account.isVerified ?? true }),
      }),
    }),
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 60, Interaction: 60, Session: 60, Grant: 60 },
  });
  const { prototype } = (provider as unknown as { IdToken: { prototype: IssuedToken } }).IdToken;
  const { issue } = prototype;
  prototype.issue = async function (options) {
    const { audience, nonce, expiresAt, hasOtherSignature } = fault;
    if (audience !== undefined) this.client = Object.create(this.client, { clientId: { value: audience } });
    if (nonce !== undefined) this.set('nonce', nonce);
    const token = await issue.call(this, expiresAt === undefined ? options : { ...options, expiresAt });
    return hasOtherSignature === undefined ? token : token.replace(/.{8}$/, 'AAAAAAAA');
  };
  provider.Client.prototype.redirectUriAllowed = (uri: string) => redirects.has(uri);
  const callback = provider.callback();
  async function handle(...[request, response]: Parameters<typeof callback>): Promise<void> {
    if (request.url?.startsWith('/interaction/') !== true) return callback(request, response);
    const { prompt, params } = await provider.interactionDetails(request, response);
    if (prompt.name === 'login')
      return provider.interactionFinished(request, response, { login: { accountId: account.subject } });
    const grant = new provider.Grant({ accountId: account.subject, clientId: String(params['client_id']) });
    grant.addOIDCScope('openid email');
    const grantId = await grant.save();
    return provider.interactionFinished(request, response, { consent: { grantId } }, { mergeWithLastSubmission: true });
  }
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  scope.after(stop);
  return {
    issuer,
    flags: [`--oidc-issuer=${issuer}`, `--oidc-client-id=${CLIENT_ID}`],
    allow: (redirectUri) => void redirects.add(redirectUri),
    async visit(url, who) {
      account = who;
      const cookies = new Map<string, string>();
      let at = url;
      for (let hops = 0; at.startsWith(issuer); hops++) {
        if (hops > 10) throw new Error('the provider redirects without end');
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
        const response = await fetch(at, { redirect: 'manual', headers: { cookie } });
        for (const each of response.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
          cookies.set(name, value);
        }
        const location = response.headers.get('location');
        if (location === null) throw new Error(`the provider answered ${response.status}: ${await response.text()}`);
        at = new URL(location, at).href;
      }
      const { searchParams } = new URL(at);
      return { code: searchParams.get('code') ?? '', state: searchParams.get('state') ?? '' };
    },
    break(wanted) {
      fault = wanted;
    },
    seen,
    stop,
  };
}
