/** Doubles of the services that keep the secrets of key slots. They verify requests like the real services. */
import assert from 'node:assert/strict';
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Scope } from './directory.ts';

export interface ServedResponse {
  readonly status: number;
  /** Text is sent as it is, anything else as JSON. */
  readonly body: object | string;
  readonly location?: string;
}

/** Responds to every request with what `respond` returns. Resolves to its address. */
export async function serve(
  scope: Scope,
  respond: (request: IncomingMessage, body: string) => ServedResponse,
): Promise<string> {
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { status, body, location } = respond(request, Buffer.concat(chunks).toString('utf8'));
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const headers = { 'content-type': 'application/json', ...(location === undefined ? {} : { location }) };
    response.writeHead(status, headers).end(text);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  scope.after(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  const bound = server.address();
  assert.ok(typeof bound === 'object' && bound !== null);
  return `http://127.0.0.1:${bound.port}`;
}

/** Encrypts under a key of the double, bound to a text. */
function box() {
  const key = randomBytes(32);
  return {
    close(text: string, bound: string): string {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(bound));
      const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), encrypted]).toString('base64');
    },
    open(text: string, bound: string): string | null {
      const bytes = Buffer.from(text, 'base64');
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAAD(Buffer.from(bound));
      decipher.setAuthTag(bytes.subarray(12, 28));
      try {
        return decipher.update(bytes.subarray(28)).toString('utf8') + decipher.final('utf8');
      } catch {
        return null;
      }
    },
  };
}

export const TRANSIT_TOKEN = 's.token-of-the-service';

/** `mayDecrypt`: whether the policy of the token permits that, too. */
export const startTransit = (scope: Scope, { mayDecrypt = true }: { mayDecrypt?: boolean } = {}, boxOf = box()) =>
  serve(scope, (request, text) => {
    if (request.headers['x-vault-token'] !== TRANSIT_TOKEN)
      return { status: 403, body: { errors: ['permission denied'] } };
    const { plaintext, ciphertext, associated_data: bound } = JSON.parse(text);
    if (request.url === '/v1/transit/encrypt/leasehold')
      return { status: 200, body: { data: { ciphertext: `vault:v1:${boxOf.close(plaintext, bound)}` } } };
    if (!mayDecrypt) return { status: 403, body: { errors: ['permission denied'] } };
    if (request.url !== '/v1/transit/decrypt/leasehold') return { status: 404, body: { errors: [] } };
    const opened = boxOf.open(String(ciphertext).slice('vault:v1:'.length), bound);
    if (opened === null) return { status: 400, body: { errors: ['cipher: message authentication failed'] } };
    return { status: 200, body: { data: { plaintext: opened } } };
  });

export const AWS_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'a secret',
  AWS_REGION: 'eu-west-1',
};
const AWS_VARIABLE = /^AWS_/;

/** Gives AWS's SDK these variables alone until the scope ends. */
export function useAwsEnvironment(scope: Scope, variables: Readonly<Record<string, string>> = AWS_CREDENTIALS): void {
  const isolated = {
    AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
    AWS_CONFIG_FILE: '/nonexistent',
    AWS_EC2_METADATA_DISABLED: 'true',
  };
  const clear = (): void => {
    for (const name of Object.keys(process.env)) if (AWS_VARIABLE.test(name)) delete process.env[name];
  };
  const before = Object.entries(process.env).filter(([name]) => AWS_VARIABLE.test(name));
  clear();
  Object.assign(process.env, isolated, variables);
  scope.after(() => {
    clear();
    Object.assign(process.env, Object.fromEntries(before));
  });
}

/** Whose requests the double of KMS accepts. */
export interface KmsCaller {
  readonly id: string;
  readonly secret: string;
  /** The session token, which must be signed. */
  readonly token?: string;
}
const STATIC: KmsCaller = { id: AWS_CREDENTIALS.AWS_ACCESS_KEY_ID, secret: AWS_CREDENTIALS.AWS_SECRET_ACCESS_KEY };
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const MAX_SKEW_MS = 5 * 60_000;

/** Null if the signature is right. SOURCE: docs.aws.amazon.com, "Create a signed AWS API request". */
function signatureProblem(
  request: IncomingMessage,
  body: string,
  now: number,
  { id: knownId, secret, token }: KmsCaller,
): string | null {
  const found = /^AWS4-HMAC-SHA256 Credential=(\S+?), ?SignedHeaders=(\S+?), ?Signature=([0-9a-f]{64})$/.exec(
    request.headers.authorization ?? '',
  );
  if (found === null) return 'MissingAuthenticationTokenException';
  const [, credential = '', names = '', signature] = found;
  const [id, day = '', region = '', service = '', end] = credential.split('/');
  const date = String(request.headers['x-amz-date']);
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (id !== knownId || end !== 'aws4_request' || !date.startsWith(day)) return 'UnrecognizedClientException';
  if (region !== 'eu-west-1' || service !== 'kms') return 'SignatureDoesNotMatch';
  if (!(Math.abs(now - at) < MAX_SKEW_MS)) return 'RequestExpired';
  if (request.headers['x-amz-security-token'] !== token) return 'UnrecognizedClientException';
  const signed = ['host', 'x-amz-date', 'x-amz-target', ...(token === undefined ? [] : ['x-amz-security-token'])];
  for (const name of signed) {
    if (!names.split(';').includes(name)) return 'IncompleteSignature';
  }
  const headers = names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}\n`);
  const bodyHash = createHash('sha256').update(body).digest('hex');
  const canonical = [request.method, '/', '', headers.join(''), names, bodyHash].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const hash = createHash('sha256').update(canonical).digest('hex');
  const key = hmac(hmac(hmac(hmac(`AWS4${secret}`, day), region), service), 'aws4_request');
  const expected = hmac(key, ['AWS4-HMAC-SHA256', date, scope, hash].join('\n')).toString('hex');
  return signature === expected ? null : 'SignatureDoesNotMatch';
}

/** `clockMs`: how far its clock is ahead; `mayDecrypt`: whether the policy of the key permits that, too. */
export const startKms = (
  scope: Scope,
  {
    clockMs = 0,
    caller = STATIC,
    mayDecrypt = true,
  }: { clockMs?: number; caller?: KmsCaller; mayDecrypt?: boolean } = {},
  boxOf = box(),
) =>
  serve(scope, (request, text) => {
    const rejected = (type: string): ServedResponse => ({ status: 400, body: { __type: `com.amazonaws.kms#${type}` } });
    const problem = signatureProblem(request, text, Date.now() + clockMs, caller);
    if (problem !== null) return rejected(problem);
    const { KeyId, Plaintext, CiphertextBlob, EncryptionContext } = JSON.parse(text);
    if (KeyId !== 'alias/leasehold') return rejected('NotFoundException');
    const bound = JSON.stringify(EncryptionContext);
    if (request.headers['x-amz-target'] === 'TrentService.Encrypt')
      return { status: 200, body: { CiphertextBlob: boxOf.close(Plaintext, bound) } };
    if (!mayDecrypt) return rejected('AccessDeniedException');
    const opened = boxOf.open(CiphertextBlob, bound);
    return opened === null ? rejected('InvalidCiphertextException') : { status: 200, body: { Plaintext: opened } };
  });
