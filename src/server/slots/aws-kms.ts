/**
 * The slot of a key in AWS KMS, which encrypts the secret under a key that never leaves it, with the vault id as
 * encryption context. SOURCE: docs.aws.amazon.com/kms/latest/APIReference, Encrypt and Decrypt.
 */
import type { VaultId } from '../../core/keyset.ts';
import { signAwsRequest } from '../../crypto/aws-signature.ts';
import { newRootKey } from '../../crypto/random.ts';
import { readAwsCredentials } from './aws-credentials.ts';
import { type AwsEnvironment, domainOf } from './aws-roles.ts';
import { postJson } from './post-json.ts';
import { checkedKey, SlotKindError, type SlotKindPort } from './slot-kind.ts';

const KEY_ID = /^[A-Za-z0-9:/_-]{1,2048}$/;
const KEY_RULE = 'must be the id, ARN or alias of a KMS key';
const ARN_REGION = /^arn:aws[a-z-]*:kms:([a-z0-9-]+):/;
const REGION = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export interface KmsOptions {
  /** In place of the region's own; for VPC endpoints and tests. */
  readonly endpoint: string | null;
  readonly environment: AwsEnvironment;
}

export function awsKmsSlots({ endpoint, environment }: KmsOptions): SlotKindPort {
  /** The base64 in `field` of the response. @throws SlotKindError */
  const call = async (action: 'Encrypt' | 'Decrypt', key: string, body: object, field: string): Promise<string> => {
    const region = regionOf(key, environment);
    const request = {
      url: new URL(endpoint ?? `https://kms.${region}.${domainOf(region)}/`),
      headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `TrentService.${action}` },
      body: JSON.stringify({ KeyId: key, ...body }),
    };
    const headers = await signAwsRequest(request, await readAwsCredentials(environment, region), region, 'kms');
    const { status, fields } = await postJson('AWS KMS', { ...request, headers, ca: null });
    const value = fields[field];
    if (status === 200 && typeof value === 'string') return value;
    const given = fields['__type'];
    const type = typeof given === 'string' ? /^(?:[\w.]+#)?(\w{1,64})$/.exec(given)?.[1] : undefined;
    throw new SlotKindError(`AWS KMS returned ${type ?? status} for ${action}`);
  };
  const boundTo = (vaultId: VaultId) => ({ EncryptionContext: { 'leasehold:vault-id': vaultId } });
  return {
    async create(given, vaultId) {
      const key = checkedKey(given, KEY_ID, KEY_RULE);
      const secret = newRootKey();
      const plaintext = { Plaintext: Buffer.from(secret).toString('base64') };
      const ciphertext = await call('Encrypt', key, { ...plaintext, ...boundTo(vaultId) }, 'CiphertextBlob');
      return { secret, parameters: { key, ciphertext } };
    },
    async open(parameters, vaultId) {
      const key = checkedKey(parameters['key'], KEY_ID, KEY_RULE);
      const body = { CiphertextBlob: String(parameters['ciphertext']), ...boundTo(vaultId) };
      return Buffer.from(await call('Decrypt', key, body, 'Plaintext'), 'base64');
    },
  };
}

/** That of the key's ARN, or of the environment. @throws SlotKindError */
function regionOf(key: string, environment: AwsEnvironment): string {
  const region = ARN_REGION.exec(key)?.[1] || environment['AWS_REGION'] || environment['AWS_DEFAULT_REGION'];
  if (!region) throw new SlotKindError('no AWS region: set AWS_REGION, or name the key by its ARN');
  if (REGION.test(region)) return region;
  throw new SlotKindError('the AWS region is not valid: set AWS_REGION to a name such as eu-west-1');
}
