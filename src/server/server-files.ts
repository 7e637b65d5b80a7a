/**
 * The administrator's token, and the files that a running server publishes in its data directory for commands on the
 * same machine: its address, the token, and the key with which it proves that it serves this directory. An orderly
 * shutdown deletes all three.
 */
import { readFileSync, rmSync, statSync } from 'node:fs';
import { timingSafeEqualText } from '../crypto/primitives.ts';
import { isProofText, newProofText, newToken, serviceProof } from '../crypto/tokens.ts';
import { StartupError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import {
  checkPrivateFile,
  readSecretBytes,
  warnIfReadableByOthers,
  writePrivateFile,
} from '../platform/private-files.ts';
import { DatabaseLock } from '../store/sqlite/database-lock.ts';
import { Secret } from '../vault/credentials/credential.ts';

export class ServerFiles {
  readonly #dataDir: string;
  #proof: { readonly key: string; readonly address: string } | null = null;
  #token: AdminToken | null = null;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** @throws StartupError, or a system error */
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

export interface ServerChallenge {
  readonly nonce: string;
  isAnsweredBy(proof: string | null): boolean;
}

/** `address` is the content of the address file. Null unless a server has the directory open. */
export function challengeServer(dataDir: string, address: string): ServerChallenge | null {
  const { lockFile, proofFile } = dataDirPaths(dataDir);
  if (!isLocked(lockFile)) return null;
  const key = readProofKey(proofFile);
  if (key === null) return null;
  const nonce = newProofText();
  const expected = serviceProof(key, nonce, address);
  return { nonce, isAnsweredBy: (proof) => proof !== null && timingSafeEqualText(proof, expected) };
}

/** Whether a server holds the lock. A lock that cannot be read counts as free, so that the command sends nothing. */
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

const GIVEN_TOKEN = /^[A-Za-z0-9\-._~+/]{32,512}=*$/;

export interface AdminToken {
  readonly token: Secret;
  /** The file to write; null for a supplied token, which is never written or printed. */
  readonly writtenTo: string | null;
}

/** Chooses the token, and writes nothing; `placeAdminToken` writes it. @throws StartupError */
export function chooseAdminToken(
  givenFile: string | null,
  tokenFile: string,
  warn: (line: string) => void,
): AdminToken {
  if (givenFile === null) return { token: newToken('lha_'), writtenTo: tokenFile };
  return { token: readGivenToken(givenFile, warn), writtenTo: null };
}

/** @throws StartupError */
export function readGivenToken(givenFile: string, warn: (line: string) => void): Secret {
  const text = readSecretBytes(givenFile)
    .toString('latin1')
    .replace(/\r?\n$/, '');
  if (!GIVEN_TOKEN.test(text)) {
    throw new StartupError(`${givenFile} must contain one token of 32 to 512 characters of A-Z a-z 0-9 - . _ ~ + /.`);
  }
  warnIfReadableByOthers(givenFile, warn);
  return new Secret(text);
}

function placeAdminToken({ token, writtenTo }: AdminToken, tokenFile: string, givenFile: string | null): void {
  checkPrivateFile(tokenFile);
  if (writtenTo !== null) writePrivateFile(writtenTo, `${token.reveal()}\n`);
  else if (givenFile === null || !isSameFile(givenFile, tokenFile)) rmSync(tokenFile, { force: true });
}

function isSameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}
