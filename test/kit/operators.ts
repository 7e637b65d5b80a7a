/** Operators of a service: their keys are made here, because the service never makes them. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { type Client, createClient, logIn } from './client.ts';

export interface OperatorKey {
  readonly privateKey: KeyObject;
  /** Base64 of the 32 bytes. */
  readonly publicKey: string;
}

export function newOperatorKey(): OperatorKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  return { privateKey, publicKey: Buffer.from(x, 'base64url').toString('base64') };
}

interface Service {
  readonly address: string;
  readonly admin: Client;
}

export interface TestOperator extends Client {
  readonly token: string;
  readonly key: OperatorKey;
  /** Logs in again; resolves to the session's token. */
  enter(): Promise<string>;
}

/** Adds the operator, gives it a policy for each grant (`{ 'prod/*': ['store'] }`), and logs it in. */
export async function addOperator(
  { address, admin }: Service,
  name: string,
  roles: readonly string[],
  grants: Readonly<Record<string, readonly string[]>> = {},
): Promise<TestOperator> {
  const key = newOperatorKey();
  await expectStatus(admin.post('/api/v1/operators', { name, roles, public_key: key.publicKey }), 201);
  const principal = `operator:${name}`;
  for (const [index, [pattern, actions]] of Object.entries(grants).entries()) {
    const policy = { name: `of-${name}-${index}`, principal, resources: [pattern], actions };
    await expectStatus(admin.post('/api/v1/policies', policy), 201);
  }
  const enter = () => logIn(address, principal, key.privateKey);
  const token = await enter();
  return { ...createClient(address, token), token, key, enter };
}

/** @throws Error for another status */
export async function expectStatus(answer: ReturnType<Client['post']>, expected: number): Promise<void> {
  const { status, text } = await answer;
  if (status !== expected) throw new Error(`expected ${expected}, got ${status}: ${text}`);
}
