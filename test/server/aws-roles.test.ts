// A node of AWS opens its KMS slot with the role that it has there. The doubles verify what the real ones do; KMS
// checks the signature with the session token of the role.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { awsKmsSlots } from '../../src/server/slots/aws-kms.ts';
import type { VaultId } from '../../src/vault/keys/keyset.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import {
  AWS_CREDENTIALS,
  type KmsCaller,
  type ServedResponse,
  serve,
  startKms,
  useAwsEnvironment,
} from '../kit/key-services.ts';

const VAULT = 'the vault' as VaultId;
const ROLE = { id: 'ASIAROLE', secret: 'a secret of the role', token: 'the/session+of/the+role==' };
const JSON_OF_ROLE = {
  AccessKeyId: ROLE.id,
  SecretAccessKey: ROLE.secret,
  Token: ROLE.token,
  Expiration: '2031-01-01T00:00:00Z',
};

/** Creates and opens a slot. @throws if KMS or the role's credentials fail */
async function useSlot(scope: Scope, environment: Readonly<Record<string, string>>, caller: KmsCaller = ROLE) {
  useAwsEnvironment(scope, { AWS_REGION: 'eu-west-1', ...environment });
  const kms = awsKmsSlots({ endpoint: await startKms(scope, { caller }) });
  const { secret, parameters } = await kms.create('alias/leasehold', VAULT);
  assert.deepEqual(await kms.open(parameters, VAULT), Buffer.from(secret));
}

function tokenFile(scope: Scope, text: string): string {
  const file = join(temporaryDirectory(scope), 'token');
  writeFileSync(file, text);
  return file;
}

const ROLE_ARN = 'arn:aws:iam::123456789012:role/leasehold';
const webIdentity = (scope: Scope) => ({
  AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile(scope, 'a token'),
  AWS_ROLE_ARN: ROLE_ARN,
});
const stsError = (code: string): ServedResponse => ({
  status: 400,
  body: `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>m</Message></Error></ErrorResponse>`,
});

/** AssumeRoleWithWebIdentity: accepts one token for one role, without a signature. */
const startSts = (scope: Scope, accepted: { token: string }, padding = '') =>
  serve(scope, ({ method, headers }, text) => {
    const form = new URLSearchParams(text);
    const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
    if (method !== 'POST' || !isForm || form.get('Action') !== 'AssumeRoleWithWebIdentity')
      return stsError('InvalidAction');
    if (form.get('Version') !== '2011-06-15' || headers.authorization !== undefined) return stsError('InvalidAction');
    if (form.get('WebIdentityToken') !== accepted.token) return stsError('InvalidIdentityToken');
    if (form.get('RoleArn') !== ROLE_ARN || !/^[\w+=,.@-]{2,64}$/.test(form.get('RoleSessionName') ?? ''))
      return stsError('AccessDenied');
    const credentials = `<AccessKeyId>${ROLE.id}</AccessKeyId><SecretAccessKey>${STS_SECRET}</SecretAccessKey><SessionToken>${ROLE.token}</SessionToken><Expiration>2031-01-01T00:00:00Z</Expiration>`;
    const result = `<AssumeRoleWithWebIdentityResult><Credentials>\n${credentials}\n</Credentials></AssumeRoleWithWebIdentityResult>`;
    const name = 'AssumeRoleWithWebIdentityResponse';
    return {
      status: 200,
      body: `<${name} xmlns="https://sts.amazonaws.com/doc/2011-06-15/">${padding}${result}</${name}>`,
    };
  });
const STS_SECRET = randomBytes(30).toString('base64');
const STS_ROLE = { ...ROLE, secret: STS_SECRET };

test('a pod of EKS has the role of its web identity, with the token that the file contains now', async (t) => {
  const accepted = { token: 'eyJ.first.token' };
  const file = tokenFile(t, 'eyJ.first.token');
  const environment = {
    AWS_WEB_IDENTITY_TOKEN_FILE: file,
    AWS_ROLE_ARN: ROLE_ARN,
    AWS_ENDPOINT_URL_STS: await startSts(t, accepted),
  };
  await useSlot(t, environment, STS_ROLE);
  accepted.token = 'eyJ.second.token';
  await assert.rejects(
    useSlot(t, environment, STS_ROLE),
    /no AWS credentials \(InvalidIdentityToken\w*\): set AWS_ACCESS_KEY_ID/,
  );
  writeFileSync(file, accepted.token);
  await useSlot(t, environment, STS_ROLE);
});

test('a response of STS that is longer than 64 KiB is not read to its end', async (t) => {
  const address = await startSts(t, { token: 'a token' }, ' '.repeat(65_536));
  await assert.rejects(
    useSlot(t, { ...webIdentity(t), AWS_ENDPOINT_URL_STS: address }, STS_ROLE),
    /no AWS credentials \(Error\)/,
  );
});

/** A container's endpoint, which demands its authorization. */
const startContainer = (scope: Scope, authorization: string | undefined, response: ServedResponse) =>
  serve(scope, (request) => {
    const isAllowed = request.method === 'GET' && request.url === '/v1/credentials';
    return isAllowed && request.headers.authorization === authorization
      ? response
      : { status: 403, body: { code: 'AccessDenied' } };
  });
const GRANTED: ServedResponse = { status: 200, body: JSON_OF_ROLE };

test('a pod of EKS Pod Identity has its role, with the token that the file contains now', async (t) => {
  const file = tokenFile(t, 'the pod token');
  const environment = {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${await startContainer(t, 'the pod token', GRANTED)}/v1/credentials`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file,
  };
  await useSlot(t, environment);
  writeFileSync(file, 'an ended token');
  await assert.rejects(useSlot(t, environment), /no AWS credentials \(\w+\): set/);
});

test("a container's token is not sent in plain text to another machine", async (t) => {
  const environment = {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://127.0.0.1.example.org/v1',
    AWS_CONTAINER_AUTHORIZATION_TOKEN: 'a token',
  };
  await assert.rejects(useSlot(t, environment), /no AWS credentials/);
});

/** Version 2 of the instance metadata service. */
function startInstance(scope: Scope, role: string) {
  const tokens = new Set<string>();
  return serve(scope, ({ method, url, headers }) => {
    if (url === '/latest/api/token') {
      const lifetime = Number(headers['x-aws-ec2-metadata-token-ttl-seconds']);
      if (method !== 'PUT') return { status: 405, body: '' };
      if (!(lifetime >= 1 && lifetime <= 21_600) || headers['x-forwarded-for']) return { status: 400, body: '' };
      const token = randomBytes(40).toString('base64');
      tokens.add(token);
      return { status: 200, body: token };
    }
    if (!tokens.has(String(headers['x-aws-ec2-metadata-token']))) return { status: 401, body: '' };
    if (role !== '' && url === '/latest/meta-data/iam/security-credentials/') return { status: 200, body: role };
    if (url === '/latest/meta-data/iam/security-credentials/leasehold-node')
      return { status: 200, body: { Code: 'Success', Type: 'AWS-HMAC', ...JSON_OF_ROLE } };
    return { status: 404, body: '<html>404</html>' };
  });
}

const ofInstance = (address: string) => ({
  AWS_EC2_METADATA_DISABLED: '',
  AWS_EC2_METADATA_SERVICE_ENDPOINT: address,
});

test('an instance of EC2 has its role', async (t) => {
  await useSlot(t, ofInstance(await startInstance(t, 'leasehold-node')));
});

test('an instance that gives no token is asked for nothing more', async (t) => {
  const asked: string[] = [];
  const address = await serve(t, ({ method, url }) => {
    asked.push(`${method} ${url}`);
    return method === 'PUT' ? { status: 403, body: '' } : { status: 200, body: 'leasehold-node' };
  });
  await assert.rejects(useSlot(t, ofInstance(address)), /no AWS credentials/);
  assert.deepEqual(asked, ['PUT /latest/api/token']);
});

test('where no instance endpoint responds, the error names what to set', async (t) => {
  await assert.rejects(useSlot(t, ofInstance('http://127.0.0.1:9')), /no AWS credentials .*: set AWS_ACCESS_KEY_ID/);
});

const ofProfile = (scope: Scope, lines: readonly string[]) => ({ AWS_CONFIG_FILE: tokenFile(scope, lines.join('\n')) });

type Variables = (address: string, scope: Scope) => Readonly<Record<string, string>>;
const PLAIN: readonly [string, Variables][] = [
  ['KMS of a variable', (address) => ({ ...AWS_CREDENTIALS, AWS_ENDPOINT_URL_KMS: address })],
  ['every service of a variable', (address) => ({ ...AWS_CREDENTIALS, AWS_ENDPOINT_URL: address })],
  [
    'every service of a profile',
    (address, scope) => ({ ...AWS_CREDENTIALS, ...ofProfile(scope, ['[default]', `endpoint_url = ${address}`]) }),
  ],
  ['STS of a variable', (address, scope) => ({ ...webIdentity(scope), AWS_ENDPOINT_URL_STS: address })],
  [
    'STS for a role of a profile',
    (address, scope) => ({
      ...ofProfile(scope, [
        '[default]',
        `role_arn = ${ROLE_ARN}`,
        `web_identity_token_file = ${tokenFile(scope, 'a token')}`,
        `endpoint_url = ${address}`,
      ]),
    }),
  ],
  ['the instance of a variable', ofInstance],
  [
    'the instance of a profile',
    (address, scope) => ({
      AWS_EC2_METADATA_DISABLED: '',
      ...ofProfile(scope, ['[default]', `ec2_metadata_service_endpoint = ${address}`]),
    }),
  ],
];
for (const [name, variablesOf] of PLAIN) {
  test(`nothing is sent over plain HTTP to a machine that is not this one: ${name}`, async (t) => {
    const received: unknown[] = [];
    const address = await serve(t, ({ method, url }) => {
      received.push([method, url]);
      return { status: 400, body: '' };
    });
    // 0.0.0.0 leads to this machine, and the rule counts it as another.
    useAwsEnvironment(t, { AWS_REGION: 'eu-west-1', ...variablesOf(address.replace('127.0.0.1', '0.0.0.0'), t) });
    await assert.rejects(
      awsKmsSlots({ endpoint: null }).create('alias/leasehold', VAULT),
      /^Error: .*AWS.* on another machine, 0\.0\.0\.0.*: (?:correct|unset) /,
    );
    assert.deepEqual(received, []);
  });
}

test('the role of an instance is not asked for through a proxy', async (t) => {
  const received: unknown[] = [];
  const proxy = await serve(t, ({ url }) => {
    received.push(url);
    return { status: 502, body: '' };
  });
  const program = `
    const { awsKmsSlots } = await import(process.argv[1]);
    await awsKmsSlots({ endpoint: 'http://127.0.0.1:9' }).create('alias/leasehold', 'v').catch(({ message }) => console.log(message));`;
  const path = join(import.meta.dirname, '../../src/server/slots/aws-kms.ts');
  useAwsEnvironment(t, { AWS_REGION: 'eu-west-1', ...ofInstance(await startInstance(t, 'leasehold-node')) });
  const env = {
    ...process.env,
    NODE_USE_ENV_PROXY: '1',
    HTTP_PROXY: proxy,
    http_proxy: proxy,
    NO_PROXY: '',
    no_proxy: '',
  };
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program, path], {
    env,
  });
  assert.deepEqual([stdout, received], ['AWS KMS cannot be reached (ECONNREFUSED)\n', []]);
});
