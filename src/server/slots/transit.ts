/**
 * The slot of Transit in HashiCorp Vault or OpenBao. Transit encrypts the secret under a key that never leaves it. The
 * address, the token and the certificate authority come from the configuration, never from the database or a request.
 * SOURCE: openbao.org/api-docs/secret/transit.
 */
import { readFileSync } from 'node:fs';
import { hasCertificates, newRootKey } from '../../crypto/primitives.ts';
import { errnoSuffix } from '../../platform/errors.ts';
import type { VaultId } from '../../vault/keys/keyset.ts';
import type { Configuration } from '../configuration.ts';
import { fetchFor, HttpError, type HttpPost, type HttpResponse, post } from '../webhook-client.ts';
import { checkedKey, readSlotFile, SlotKindError, type SlotKindPort } from './slot-kind.ts';

const TIMEOUT_MS = 5000;
const KEY_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const KEY_RULE = 'must name the Transit key: 1 to 128 of A-Z a-z 0-9 . _ -';
/** The characters that a header may contain, without spaces. */
const TOKEN = /^[\x21-\x7e]+$/;

export function transitSlots({ address, tokenFile, caFile, mount }: Configuration['transit']): SlotKindPort {
  /** The value of `field` in the response. @throws SlotKindError */
  const call = async (verb: 'encrypt' | 'decrypt', key: string, body: object, field: string): Promise<string> => {
    if (address === null || tokenFile === null) {
      throw new SlotKindError('Transit is not configured: give --transit-address and --transit-token-file');
    }
    // WHY at each call: both files may be replaced while the server runs.
    const headers = { 'X-Vault-Token': readToken(tokenFile), 'content-type': 'application/json' };
    const url = new URL(`${address}/v1/${mount}/${verb}/${key}`);
    const send = fetchFor(url, caFile === null ? null : readAuthorities(caFile));
    const { status, text } = await postInTime(send, { url, headers, body: JSON.stringify(body) });
    const value = dataField(text, field);
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

async function postInTime(send: typeof fetch, request: Omit<HttpPost, 'signal'>): Promise<HttpResponse> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    return await post(send, { ...request, signal });
  } catch (error) {
    if (error instanceof HttpError) throw new SlotKindError(`Transit ${error.message}`);
    if (signal.aborted) throw new SlotKindError('Transit cannot be reached: no response in time');
    throw error;
  }
}

/** Undefined for a text of another form. */
function dataField(text: string, name: string): unknown {
  try {
    const body: { readonly data?: Readonly<Record<string, unknown>> | null } | null = JSON.parse(text);
    return body?.data?.[name];
  } catch {
    return undefined;
  }
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
