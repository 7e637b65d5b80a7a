/** The token that callers over HTTP need. It belongs to this server and is not the agent's. */

import { lstat, readFile } from 'node:fs/promises';
import { Secret } from '../core/secret.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { privacyViolation } from '../platform/ownership.ts';

/** 256 random bits as 43 characters, with a prefix that scanners recognise. */
export function makeToken(): Secret {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return new Secret(`lhm_${Buffer.from(bytes).toString('base64url')}`);
}

const FIELD = '--http-token-file';

/** @throws UsageError */
export async function readToken(file: string): Promise<Secret> {
  let text: string;
  try {
    const violation = privacyViolation(await lstat(file), 'file');
    if (violation !== null) throw new UsageError(`${FIELD}: ${file} ${violation}`);
    text = (await readFile(file, 'latin1')).replace(/\r?\n$/, '');
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${FIELD}: ${file} cannot be read${errnoSuffix(error)}`);
  }
  if (!/^[A-Za-z0-9._~+/=-]{32,512}$/.test(text)) {
    throw new UsageError(`${FIELD}: the token must be one line of 32 to 512 characters of A-Z a-z 0-9 . _ ~ + / = -`);
  }
  return new Secret(text);
}

/**
 * Checks a request's Authorization header in constant time: both tokens are hashed, and all 32 bytes of the digests
 * compared.
 */
export async function createTokenCheck(token: Secret): Promise<(header: string | undefined) => Promise<boolean>> {
  const expected = await digest(token.reveal());
  return async (header) => {
    const [, given] = /^Bearer +(\S+) *$/i.exec(header ?? '') ?? [];
    const found = await digest(given ?? '');
    let difference = given === undefined ? 1 : 0;
    for (const [at, byte] of expected.entries()) difference |= byte ^ (found[at] ?? 0);
    return difference === 0;
  };
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
}
