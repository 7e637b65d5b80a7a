/** Signs in to the console as a browser at `http://localhost:PORT` does. */
import { Authenticator, type Page } from './authenticator.ts';
import { type Client, createClient, type TestResponse } from './client.ts';

export const AUTH = '/api/v1/auth';

export interface Browser extends Client {
  readonly origin: string;
  options(): Promise<ReturnType<typeof JSON.parse>>;
  /** Begins and ends a sign-in with the passkey. */
  signIn(authenticator: Authenticator, page?: Partial<Page>): Promise<TestResponse>;
  /** Begins and ends the registration of a passkey with the code of an enrolment. */
  enrol(code: string, authenticator: Authenticator, page?: Partial<Page>): Promise<TestResponse>;
}

/** The address of the service at which passkeys work. */
export function toLocalhost(address: string): string {
  return address.replace('127.0.0.1', 'localhost');
}

export function openBrowser({ address }: { readonly address: string }): Browser {
  const origin = toLocalhost(address);
  const client = createClient(origin, null);
  const options = async () => (await client.post(`${AUTH}/passkey/options`, {})).body.data;
  return {
    ...client,
    origin,
    options,
    async signIn(authenticator, page = {}) {
      const { challenge_id, options: asked } = await options();
      const response = authenticator.signIn(asked, { origin, ...page });
      return client.post(`${AUTH}/passkey/verify`, { challenge_id, response });
    },
    async enrol(code, authenticator, page = {}) {
      const begun = await client.post(`${AUTH}/passkey/register-options`, { code });
      if (begun.status !== 200) return begun;
      const { challenge_id, options: asked } = begun.body.data;
      const response = authenticator.register(asked, { origin, ...page });
      return client.post(`${AUTH}/passkey/register`, { challenge_id, response, label: 'laptop', code });
    },
  };
}

/** The headers with which the page sends the session that a response opened. */
export function sessionHeaders(opened: TestResponse): { cookie: string; 'x-leasehold-session-part': string } {
  const [cookie = ''] = (opened.headers.get('set-cookie') ?? '').split(';');
  return { cookie, 'x-leasehold-session-part': opened.body.data.session_part };
}

interface Service {
  readonly address: string;
  readonly admin: Client;
}

/** Adds an operator without a key; resolves to the code of its enrolment. */
export async function invite({ admin }: Service, name: string, roles: readonly string[] = ['viewer']): Promise<string> {
  await admin.post('/api/v1/operators', { name, roles });
  return (await admin.post(`/api/v1/operators/${name}/enrolment`)).body.data.code;
}

/** Adds an operator with a passkey. */
export async function addWithPasskey(
  service: Service,
  name: string,
  roles: readonly string[] = ['viewer'],
  authenticator = new Authenticator(),
): Promise<Authenticator> {
  const answer = await openBrowser(service).enrol(await invite(service, name, roles), authenticator);
  if (answer.status !== 201) throw new Error(`the enrolment of ${name} got ${answer.status}: ${answer.text}`);
  return authenticator;
}
