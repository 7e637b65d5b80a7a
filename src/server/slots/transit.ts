/**
 * The slot of Transit in HashiCorp Vault or OpenBao, which encrypts the secret under a key that never leaves it. The
 * address, the token and the certificate authority come from the configuration, never from the database or a request.
 * SOURCE: openbao.org/api-docs/secret/transit.
 */
import { readFileSync } from 'node:fs';
import type { VaultId } from '../../core/keyset.ts';
import { hasCertificates } from '../../crypto/certificates.ts';
import { newRootKey } from '../../crypto/random.ts';
import { errnoSuffix } from '../../platform/errno.ts';
import { postJson, toFields } from './post-json.ts';
import { checkedKey, readSlotFile, SlotKindError, type SlotKindPort } from './slot-kind.ts';

const KEY_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const KEY_RULE = 'must name the Transit key: 1 to 128 of A-Z a-z 0-9 . _ -';
/** What a header may contain, without spaces. */
const TOKEN = /^[\x21-\x7e]+$/;

export interface TransitOptions {
  /** Such as `https://bao.example.org:8200`; null if the kind is not configured. */
  readonly address: string | null;
  readonly tokenFile: string | null;
  readonly caFile: string | null;
  /** The path at which the engine is mounted. */
  readonly mount: string;
}

export function transitSlots({ address, tokenFile, caFile, mount }: TransitOptions): SlotKindPort {
  /** The value of `field` in the response. @throws SlotKindError */
  const call = async (verb: 'encrypt' | 'decrypt', key: string, body: object, field: string): Promise<string> => {
    if (address === null || tokenFile === null) {
      throw new SlotKindError('Transit is not configured: give --transit-address and --transit-token-file');
    }
    // WHY at each call: both files may be replaced while the service runs.
    const { status, fields } = await postJson('Transit', {
      url: new URL(`${address}/v1/${mount}/${verb}/${key}`),
      headers: { 'X-Vault-Token': readToken(tokenFile), 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ca: caFile === null ? null : readAuthorities(caFile),
    });
    const value = toFields(fields['data'])[field];
    if (status === 200 && typeof value === 'string') return value;
    throw new SlotKindError(`Transit returned ${status} for ${verb}`);
  };
  // WHY the vault id: a ciphertext that was copied to another vault does not decrypt there.
  const boundTo = (vaultId: VaultId) => ({ associated_data: Buffer.from(vaultId).toString('base64') });
  return {
    async create(given, vaultId) {
      const key = checkedKey(given, KEY_NAME, KEY_RULE);
      const secret = newRootKey();
      const plaintext = Buffer.from(secret).toString('base64');
      const ciphertext = await call('encrypt', key, { plaintext, ...boundTo(vaultId) }, 'ciphertext');
      return { secret, parameters: { key, ciphertext } };
    },
    async open(parameters, vaultId) {
      const key = checkedKey(parameters['key'], KEY_NAME, KEY_RULE);
      const body = { ciphertext: parameters['ciphertext'], ...boundTo(vaultId) };
      return Buffer.from(await call('decrypt', key, body, 'plaintext'), 'base64');
    },
  };
}

function readToken(file: string): string {
  const token = readSlotFile('the token file of Transit', file).trim();
  if (TOKEN.test(token)) return token;
  throw new SlotKindError(`the token file of Transit must contain one token on one line: ${file}`);
}

function readAuthorities(file: string): string {
  const pem = readPem(file);
  if (hasCertificates(pem)) return pem;
  throw new SlotKindError(`the CA file of Transit must contain certificates in PEM: ${file}`);
}

function readPem(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    throw new SlotKindError(`the CA file of Transit cannot be read${errnoSuffix(error)}: ${file}`);
  }
}
