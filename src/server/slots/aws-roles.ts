/**
 * Credentials of the role that AWS gives a program: by web identity (EKS), from the container's endpoint (ECS, EKS Pod
 * Identity), or from the instance's (EC2). They are read for each call and never kept, so none ends before it is used.
 * SOURCE: docs.aws.amazon.com, "AWS SDKs and Tools standardized credential providers"; STS, AssumeRoleWithWebIdentity;
 * EC2, "Use the Instance Metadata Service".
 */
import { closeSync, openSync, readSync } from 'node:fs';
import type { AwsCredentials } from '../../crypto/aws-signature.ts';
import { errnoSuffix } from '../../platform/errno.ts';
import { HttpError, type HttpRequest, sendRequest } from '../http-request.ts';
import { parseJson, toFields } from './post-json.ts';
import { SlotKindError } from './slot-kind.ts';

export type AwsEnvironment = Readonly<Record<string, string | undefined>>;
type Headers = HttpRequest['headers'];

const ECS_ENDPOINT = 'http://169.254.170.2';
const INSTANCE_ENDPOINT = 'http://169.254.169.254';
/** Of ECS, of EKS, of the instance, and this machine: the only hosts that are called without TLS. */
const LOCAL_HOST =
  /^(?:169\.254\.170\.(?:2|23)|169\.254\.169\.254|\[fd00:ec2::(?:23|254)\]|localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const TIMEOUT_MS = 2000;
/** An endpoint of the same machine or its host responds within milliseconds, or not at all. */
const INSTANCE_TIMEOUT_MS = 1000;
/** SOURCE: STS accepts tokens of 4 to 20,000 characters. */
const MAX_TOKEN_BYTES = 20_000;
const ROLE_NAME = /^[\w+=,.@-]{1,128}$/;

/** The problem of a response or of its address, for the operator; repeats nothing of a secret. */
class ResponseError extends Error {}

/** Null if the environment names no web identity. @throws SlotKindError */
export function fromWebIdentity(environment: AwsEnvironment, region: string): Promise<AwsCredentials | null> {
  const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: role, AWS_ROLE_SESSION_NAME: session } = environment;
  if (!file || !role) return Promise.resolve(null);
  return describing('of the web identity', async () => {
    const address = URL.parse(environment['AWS_ENDPOINT_URL_STS'] || `https://sts.${region}.${domainOf(region)}/`);
    if (address === null) throw new ResponseError('AWS_ENDPOINT_URL_STS is not a URL');
    const form = new URLSearchParams({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: role,
      RoleSessionName: session || 'leasehold',
      // WHY at each call: the file is replaced before its token ends.
      WebIdentityToken: readToken(file),
    });
    const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
    const response = await request('POST', address, headers, TIMEOUT_MS, form.toString());
    const [id, secret, token] = ['AccessKeyId', 'SecretAccessKey', 'SessionToken'].map(
      (name) => new RegExp(`<${name}>([\\w+/=]+)</${name}>`).exec(response)?.[1],
    );
    return toCredentials(id, secret, token);
  });
}

/** Null if the environment names no endpoint. @throws SlotKindError */
export function fromContainer(environment: AwsEnvironment): Promise<AwsCredentials | null> {
  const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: path, AWS_CONTAINER_CREDENTIALS_FULL_URI: uri } = environment;
  if (!path && !uri) return Promise.resolve(null);
  return describing("of the container's role", async () => {
    const { AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file, AWS_CONTAINER_AUTHORIZATION_TOKEN: given } = environment;
    const authorization = file ? readToken(file) : given;
    const address = endpoint(path ? ECS_ENDPOINT + path : String(uri));
    return fromJson(await request('GET', address, authorization ? { authorization } : {}, TIMEOUT_MS));
  });
}

/** Null if the environment excludes the instance's endpoint, or it does not respond. @throws SlotKindError */
export async function fromInstance(environment: AwsEnvironment): Promise<AwsCredentials | null> {
  if (environment['AWS_EC2_METADATA_DISABLED']?.toLowerCase() === 'true') return null;
  const call = async (method: 'GET' | 'PUT', path: string, headers: Headers): Promise<string> => {
    const base = endpoint(environment['AWS_EC2_METADATA_SERVICE_ENDPOINT'] || INSTANCE_ENDPOINT);
    return request(method, new URL(path, base), headers, INSTANCE_TIMEOUT_MS);
  };
  // Version 2: a token that only a PUT gets, because a request that an attacker has forwarded is usually a GET.
  const lifetime = { 'x-aws-ec2-metadata-token-ttl-seconds': '60' };
  const token = call('PUT', '/latest/api/token', lifetime);
  const isSilent = await token.then(
    () => false,
    (error) => !(error instanceof ResponseError),
  );
  if (isSilent) return null;
  return describing("of the instance's role", async () => {
    const headers = { 'x-aws-ec2-metadata-token': await token };
    const roles = '/latest/meta-data/iam/security-credentials/';
    const role = (await call('GET', roles, headers)).split('\n')[0]?.trim() ?? '';
    if (!ROLE_NAME.test(role)) throw new ResponseError('the instance has no role');
    return fromJson(await call('GET', roles + role, headers));
  });
}

export function toCredentials(id?: string, secret?: string, token?: string): AwsCredentials | null {
  if (!id || !secret) return null;
  return { accessKeyId: id, secretAccessKey: secret, ...(token ? { sessionToken: token } : {}) };
}

/** The domain of AWS that a region belongs to. */
export function domainOf(region: string): string {
  return region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
}

/** The address, if it has TLS or is one of AWS's or this machine's. @throws ResponseError */
function endpoint(text: string): URL {
  const url = URL.parse(text);
  const isAllowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOCAL_HOST.test(url.hostname));
  if (url === null || !isAllowed) throw new ResponseError('the address needs https, or must be of this machine');
  return url;
}

/** @throws SlotKindError if the credentials cannot be read or are incomplete */
async function describing(whose: string, work: () => Promise<AwsCredentials | null>): Promise<AwsCredentials> {
  try {
    const found = await work();
    if (found !== null) return found;
    throw new ResponseError('the response has no credentials');
  } catch (error) {
    throw new SlotKindError(`the AWS credentials ${whose} cannot be read${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof ResponseError) return `: ${error.message}`;
  if (error instanceof HttpError) return `: the endpoint ${error.message}`;
  return error instanceof Error && error.name === 'TimeoutError' ? ': no response in time' : errnoSuffix(error);
}

function readToken(file: string): string {
  const bytes = Buffer.alloc(MAX_TOKEN_BYTES + 1);
  const handle = openSync(file, 'r');
  try {
    const length = readSync(handle, bytes);
    if (length > MAX_TOKEN_BYTES) throw new ResponseError('the token file is longer than 20,000 bytes');
    return bytes.toString('latin1', 0, length).trim();
  } finally {
    closeSync(handle);
  }
}

/** The body of a successful response. @throws ResponseError; HttpError; the TimeoutError of a signal */
async function request(
  method: HttpRequest['method'],
  url: URL,
  headers: Headers,
  timeoutMs: number,
  body = '',
): Promise<string> {
  const signal = AbortSignal.timeout(timeoutMs);
  const { status, text, isCutOff } = await sendRequest({ method, url, headers, body, ca: null, agent: null, signal });
  if (isCutOff) throw new ResponseError('the response is too long');
  if (status >= 200 && status < 300) return text;
  const code = /<Code>(\w{1,64})<\/Code>/.exec(text)?.[1];
  throw new ResponseError(`status ${status}${code === undefined ? '' : `, ${code}`}`);
}

function fromJson(text: string): AwsCredentials | null {
  const fields = toFields(parseJson(text));
  const [id, secret, token] = ['AccessKeyId', 'SecretAccessKey', 'Token'].map((name) => {
    const value = fields[name];
    return typeof value === 'string' ? value : undefined;
  });
  return toCredentials(id, secret, token);
}
