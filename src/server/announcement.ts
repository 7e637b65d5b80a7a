/**
 * The files that a running service publishes in its data directory for commands on the same machine: its address, the
 * administrator's token, and the key with which it proves that it serves this directory. An orderly stop deletes all
 * three.
 */
import { readFileSync, rmSync } from 'node:fs';
import { timingSafeEqualText } from '../crypto/primitives.ts';
import { isProofText, newProofText, serviceProof } from '../crypto/tokens.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { checkPrivateFile, writePrivateFile } from '../platform/private-files.ts';
import { DatabaseLock } from '../store/sqlite/lock.ts';
import { type AdminToken, placeAdminToken } from './admin-token.ts';

export class ServiceFiles {
  readonly #dataDir: string;
  #proof: { readonly key: string; readonly address: string } | null = null;
  #token: AdminToken | null = null;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** @throws StartupError, or what the system throws */
  publish(address: string, token: AdminToken, givenTokenFile: string | null): void {
    const { addressFile, proofFile, tokenFile } = dataDirPaths(this.#dataDir);
    this.#proof = { key: newProofText(), address };
    this.#token = token;
    placeAdminToken(token, tokenFile, givenTokenFile);
    checkPrivateFile(proofFile);
    writePrivateFile(proofFile, `${this.#proof.key}\n`);
    writePrivateFile(addressFile, `${address}\n`);
  }

  /** Leaves a supplied token file in place. */
  remove(): void {
    const { addressFile, proofFile, tokenFile } = dataDirPaths(this.#dataDir);
    this.#proof = null;
    const written = this.#token?.writtenTo === tokenFile ? [tokenFile] : [];
    for (const file of [addressFile, proofFile, ...written]) rmSync(file, { force: true });
  }

  /** Null while the files are not published, and for a malformed nonce. */
  prove(nonce: string): string | null {
    if (this.#proof === null || !isProofText(nonce)) return null;
    return serviceProof(this.#proof.key, nonce, this.#proof.address);
  }
}

/** A challenge that only the directory's running service can answer. */
export interface ServiceChallenge {
  readonly nonce: string;
  isAnsweredBy(proof: string | null): boolean;
}

/** `address` is the content of the address file. Null unless a service runs on the directory. */
export function challengeService(dataDir: string, address: string): ServiceChallenge | null {
  const { lockFile, proofFile } = dataDirPaths(dataDir);
  if (!isLocked(lockFile)) return null;
  const key = readProofKey(proofFile);
  if (key === null) return null;
  const nonce = newProofText();
  const expected = serviceProof(key, nonce, address);
  return { nonce, isAnsweredBy: (proof) => proof !== null && timingSafeEqualText(proof, expected) };
}

/** A lock that cannot be read counts as free, so that the command sends nothing. */
function isLocked(file: string): boolean {
  try {
    const held = DatabaseLock.takeShared(file);
    held?.release();
    return held === null;
  } catch {
    return false;
  }
}

function readProofKey(file: string): string | null {
  try {
    const key = readFileSync(file, 'latin1').trim();
    return isProofText(key) ? key : null;
  } catch {
    return null;
  }
}
