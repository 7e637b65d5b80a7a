/**
 * The slot of a key in AWS KMS. KMS encrypts the secret under a key that never leaves it, with the vault id as
 * encryption context. AWS's SDK finds the credentials and the endpoints, and signs the requests. This file decides
 * which endpoints it may use, and for how long.
 */
import { Readable } from 'node:stream';
import type { KMSClient } from '@aws-sdk/client-kms';
import { lookupOwn } from '../../client/node-fetch.ts';
import { isLoopbackHost } from '../../core/ip-network.ts';
import { newRootKey } from '../../crypto/primitives.ts';
import { orAborted } from '../../ledger/single-flight.ts';
import { errnoSuffix } from '../../platform/errors.ts';
import { http } from '../../platform/node-http.ts';
import type { VaultId } from '../../vault/keys/keyset.ts';
import type { Configuration } from '../configuration.ts';
import { isPrivateUrl } from '../flag-values.ts';
import { checkedKey, SlotKindError, type SlotKindPort } from './slot-kind.ts';

const KEY_ID = /^[A-Za-z0-9:/_-]{1,2048}$/;
const KEY_RULE = 'must be the id, ARN or alias of a KMS key';
const ARN_REGION = /^arn:aws[a-z-]*:kms:([a-z0-9-]+):/;
const REGION = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** The name of an AWS error, which a message may quote. */
const ERROR_NAME = /^\w{1,64}$/;
const TIMEOUT_MS = 5000;
/** Limit for a metadata endpoint on this machine or its host, which responds within milliseconds, or not at all. */
const METADATA_TIMEOUT_MS = 1000;
/** SOURCE: docs.aws.amazon.com, "Access instance metadata for an EC2 instance". */
const METADATA_HOSTS = ['169.254.169.254', '[fd00:ec2::254]'];
const MAX_RESPONSE_BYTES = 64 * 1024;

type Sdk = Awaited<ReturnType<typeof loadSdk>>;

/** `endpoint` replaces the region's own, for VPC endpoints and tests. */
export function awsKmsSlots({ endpoint }: Configuration['awsKms']): SlotKindPort {
  const call = async (
    action: 'Encrypt' | 'Decrypt',
    key: string,
    send: (sdk: Sdk, client: KMSClient) => Promise<unknown>,
  ): Promise<Uint8Array> => {
    const region = regionOf(key);
    const sdk = await loadSdk();
    // WHY a new client for each call: it reads its credentials again, so that none expires before it is used.
    const credentials = await readCredentials(sdk, region);
    const deadline = AbortSignal.timeout(TIMEOUT_MS);
    const client = new sdk.KMSClient({
      region,
      credentials,
      maxAttempts: 1,
      requestHandler: requestHandler(sdk, deadline),
      ...(endpoint === null ? {} : { endpoint }),
    });
    try {
      // WHY: a stream of the SDK that was aborted may never settle.
      const value = await orAborted(send(sdk, client), deadline);
      if (value instanceof Uint8Array) return Buffer.from(value);
    } catch (error) {
      if (deadline.aborted) throw new SlotKindError('AWS KMS cannot be reached: no response in time');
      throw error instanceof SlotKindError ? error : new SlotKindError(describe(sdk, action, error));
    } finally {
      client.destroy();
    }
    throw new SlotKindError(`AWS KMS returned no value for ${action}`);
  };
  const boundTo = (vaultId: VaultId) => ({ EncryptionContext: { 'leasehold:vault-id': vaultId } });
  return {
    async create(given, vaultId) {
      const key = checkedKey(given, KEY_ID, KEY_RULE);
      const secret = newRootKey();
      const input = { KeyId: key, Plaintext: secret, ...boundTo(vaultId) };
      const ciphertext = await call('Encrypt', key, async (sdk, client) => {
        return (await client.send(new sdk.EncryptCommand(input))).CiphertextBlob;
      });
      return { secret, parameters: { key, ciphertext: Buffer.from(ciphertext).toString('base64') } };
    },
    async open(parameters, vaultId) {
      const key = checkedKey(parameters['key'], KEY_ID, KEY_RULE);
      const ciphertext = Buffer.from(String(parameters['ciphertext']), 'base64');
      const input = { KeyId: key, CiphertextBlob: ciphertext, ...boundTo(vaultId) };
      return call('Decrypt', key, async (sdk, client) => {
        return (await client.send(new sdk.DecryptCommand(input))).Plaintext;
      });
    },
  };
}

/** WHY here: the SDK takes 90 ms to load, and most vaults never use it, so its packages are optional. */
async function loadSdk() {
  try {
    const [kms, { defaultProvider }, { getInstanceMetadataEndpoint }, { NodeHttpHandler }] = await Promise.all([
      import('@aws-sdk/client-kms'),
      import('@aws-sdk/credential-provider-node'),
      import('@smithy/credential-provider-imds'),
      import('@smithy/node-http-handler'),
    ]);
    const { KMSClient, EncryptCommand, DecryptCommand, KMSServiceException } = kms;
    return {
      KMSClient,
      EncryptCommand,
      DecryptCommand,
      KMSServiceException,
      defaultProvider,
      getInstanceMetadataEndpoint,
      NodeHttpHandler,
    };
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error;
    throw new SlotKindError(
      "AWS KMS needs AWS's SDK, which is not installed: run npm install --include=optional in the directory of Leasehold",
    );
  }
}

/** Region of the key's ARN, or else from the environment. @throws SlotKindError */
function regionOf(key: string): string {
  const { AWS_REGION: region, AWS_DEFAULT_REGION: byDefault } = process.env;
  const found = ARN_REGION.exec(key)?.[1] || region || byDefault;
  if (!found) throw new SlotKindError('no AWS region: set AWS_REGION, or name the key by its ARN');
  if (REGION.test(found)) return found;
  throw new SlotKindError('the AWS region is not valid: set AWS_REGION to a name such as eu-west-1');
}

/** Credentials from the sources that AWS's own tools use, in the same order. @throws SlotKindError */
async function readCredentials(sdk: Sdk, region: string) {
  const deadline = AbortSignal.timeout(TIMEOUT_MS);
  const handler = requestHandler(sdk, deadline);
  const clientConfig = { region, maxAttempts: 1, requestHandler: handler };
  const provider = sdk.defaultProvider({
    clientConfig,
    // WHY: with the web identity of a profile the SDK drops `clientConfig`.
    parentClientConfig: clientConfig,
    timeout: METADATA_TIMEOUT_MS,
    maxRetries: 0,
    // WHY: only version 2 needs a token, which requests that an attacker has forwarded usually cannot get.
    ec2MetadataV1Disabled: true,
  });
  // WHY: the SDK requests a role with Node's own agent, which can send the request to the proxy of HTTP_PROXY.
  http.globalAgent = new http.Agent({ lookup: lookupOwn() });
  try {
    await checkMetadataEndpoint(sdk);
    return await orAborted(provider(), deadline);
  } catch (error) {
    if (error instanceof SlotKindError) throw error;
    const name = error instanceof Error && ERROR_NAME.test(error.name) ? ` (${error.name})` : '';
    throw new SlotKindError(
      `no AWS credentials${name}: set AWS_ACCESS_KEY_ID, a profile, or a role of the pod, container or instance`,
    );
  } finally {
    handler.destroy();
  }
}

/** WHY: it is plain HTTP, and the SDK accepts any host from a variable or a profile. @throws SlotKindError */
async function checkMetadataEndpoint({ getInstanceMetadataEndpoint }: Sdk): Promise<void> {
  const { hostname } = await getInstanceMetadataEndpoint();
  if (METADATA_HOSTS.includes(hostname) || isLoopbackHost(hostname)) return;
  throw new SlotKindError(
    `the metadata service of AWS is on another machine, ${hostname}: unset AWS_EC2_METADATA_SERVICE_ENDPOINT, or ec2_metadata_service_endpoint of the profile`,
  );
}

/**
 * Sends the requests of KMS, STS and single sign-on until the deadline. WHY: the SDK accepts endpoints from variables
 * and profiles, sends to any of them over plain HTTP, and reads a response of any length into memory.
 */
function requestHandler({ NodeHttpHandler }: Sdk, deadline: AbortSignal) {
  const handler = new NodeHttpHandler({ httpAgent: new http.Agent({ lookup: lookupOwn() }) });
  const send = handler.handle.bind(handler);
  handler.handle = async (request) => {
    if (!isPrivateUrl(request)) {
      throw new SlotKindError(
        `an endpoint of AWS on another machine, ${request.hostname}, is not https://: correct AWS_ENDPOINT_URL, or endpoint_url of the profile`,
      );
    }
    const { response } = await send(request, { abortSignal: deadline });
    if (response.body instanceof Readable) response.body = Readable.from(shortened(response.body));
    return { response };
  };
  return handler;
}

async function* shortened(body: Readable): AsyncGenerator<Uint8Array> {
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_RESPONSE_BYTES) throw new Error('the response is too long');
    yield chunk;
  }
}

/** Describes the failure. Repeats only the name of AWS's error from the response. */
function describe({ KMSServiceException }: Sdk, action: string, error: unknown): string {
  if (error instanceof KMSServiceException) {
    const { name, $metadata } = error;
    const isNamed = ERROR_NAME.test(name) && name !== 'Unknown';
    return `AWS KMS returned ${isNamed ? name : $metadata.httpStatusCode} for ${action}`;
  }
  if (!(error instanceof Error && '$response' in error)) return `AWS KMS cannot be reached${errnoSuffix(error)}`;
  return `AWS KMS returned a response that cannot be read for ${action}`;
}
