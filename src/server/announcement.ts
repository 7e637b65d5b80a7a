/**
 * What a running service leaves in its data directory for commands on the same machine: where it listens, the administrator's token,
 * and the key by which it proves that it is this directory's service. All three are removed at an orderly stop.
 */
import { readFileSync, rmSync } from 'node:fs';
import { timingSafeEqualText } from '../crypto/keys.ts';
import { isProofText, newProofText, serviceProof } from '../crypto/proof.ts';
import { layOut } from '../platform/data-dir-paths.ts';
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
    const { addressFile, proofFile, tokenFile } = layOut(this.#dataDir);
    this.#proof = { key: newProofText(), address };
    this.#token = token;
    placeAdminToken(token, tokenFile, givenTokenFile);
    checkPrivateFile(proofFile);
    writePrivateFile(proofFile, `${this.#proof.key}\n`);
    writePrivateFile(addressFile, `${address}\n`);
  }

  /** A token that an operator gave stays where it is. */
  remove(): void {
    const { addressFile, proofFile, tokenFile } = layOut(this.#dataDir);
    this.#proof = null;
    const written = this.#token?.writtenTo === tokenFile ? [tokenFile] : [];
    for (const file of [addressFile, proofFile, ...written]) rmSync(file, { force: true });
  }

  /** Null while the files are not published, and for what is not a nonce. */
  prove(nonce: string): string | null {
    if (this.#proof === null || !isProofText(nonce)) return null;
    return serviceProof(this.#proof.key, nonce, this.#proof.address);
  }
}

/** A question that only the directory's running service can answer; null where none runs on it. */
export interface ServiceChallenge {
  readonly nonce: string;
  isAnsweredBy(proof: string | null): boolean;
}

/** `address` is the one that the directory names. */
export function challengeService(dataDir: string, address: string): ServiceChallenge | null {
  const { lockFile, proofFile } = layOut(dataDir);
  if (!isLocked(lockFile)) return null;
  const key = readProofKey(proofFile);
  if (key === null) return null;
  const nonce = newProofText();
  const expected = serviceProof(key, nonce, address);
  return { nonce, isAnsweredBy: (proof) => proof !== null && timingSafeEqualText(proof, expected) };
}

/** A lock that cannot be read counts as free: then nothing is sent. */
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
