/**
 * The secret of a slot from a passphrase, with Argon2id. The command computes it, so that a passphrase never reaches
 * the service. SOURCE: RFC 9106; docs/keys.md has the measured time.
 */
import { argon2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { invalidRequest } from '../core/errors.ts';
import type { SlotParameters } from '../core/keyset.ts';
import type { Secret } from '../core/secret.ts';
import { decodeStrictBase64 } from './encoding.ts';
import { KEY_BYTES } from './keyset.ts';

const SALT_BYTES = 16;
/** SOURCE: RFC 9106, section 4, second recommended option, with one lane, because a login uses one core. */
export const PASSPHRASE_COST = { memory_kib: 64 * 1024, passes: 3, lanes: 1 } as const;
/**
 * A row that was altered, or a server that is not the vault's, must not make a command take all memory, or an hour; and
 * must not get a secret from which the passphrase is guessed cheaply: the minimum is the cost of a new slot.
 */
const MAX_COST = { memory_kib: 1024 * 1024, passes: 16, lanes: 16 } as const;

const derive = promisify(argon2);

/** The parameters of a new slot. */
export function newPassphraseParameters(): SlotParameters {
  return { salt: randomBytes(SALT_BYTES).toString('base64'), ...PASSPHRASE_COST };
}

interface PassphraseCost {
  readonly salt: Uint8Array;
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** @throws INVALID_REQUEST for parameters that this kind does not have, and for a cost that is out of bounds */
export function parsePassphraseParameters(parameters: SlotParameters): PassphraseCost {
  const salt = decodeStrictBase64(String(parameters['salt']));
  if (salt?.length !== SALT_BYTES) throw invalidRequest('parameters.salt', `must be the base64 of ${SALT_BYTES} bytes`);
  return {
    salt,
    memory: parseCost(parameters, 'memory_kib'),
    passes: parseCost(parameters, 'passes'),
    parallelism: parseCost(parameters, 'lanes'),
  };
}

function parseCost(parameters: SlotParameters, name: keyof typeof MAX_COST): number {
  const value = Number(parameters[name]);
  const [min, max] = [PASSPHRASE_COST[name], MAX_COST[name]];
  if (Number.isSafeInteger(parameters[name]) && value >= min && value <= max) return value;
  throw invalidRequest(`parameters.${name}`, `must be an integer from ${min} to ${max}`);
}

/** Null for parameters that this kind does not have, and for a cost that is out of bounds. */
export async function passphraseSecret(passphrase: Secret, parameters: SlotParameters): Promise<Uint8Array | null> {
  let cost: PassphraseCost;
  try {
    cost = parsePassphraseParameters(parameters);
  } catch {
    return null;
  }
  const { salt: nonce, ...costs } = cost;
  const message = passphrase.reveal().normalize('NFC');
  return derive('argon2id', { message, nonce, ...costs, tagLength: KEY_BYTES });
}
