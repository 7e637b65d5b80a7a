/** The administrator's token: a new one at each start, or one that the operator supplies. */

import { rmSync, statSync } from 'node:fs';
import { Secret } from '../core/credential.ts';
import { newToken } from '../crypto/tokens.ts';
import { StartupError } from '../platform/errors.ts';
import {
  checkPrivateFile,
  readSecretBytes,
  warnIfReadableByOthers,
  writePrivateFile,
} from '../platform/private-files.ts';

const GIVEN_TOKEN = /^[A-Za-z0-9\-._~+/]{32,512}=*$/;

export interface AdminToken {
  readonly token: Secret;
  /** The file to write; null for a supplied token, which is never written or printed. */
  readonly writtenTo: string | null;
}

/** Writes nothing; `placeAdminToken` does. @throws StartupError */
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

/** Writes a new token; with a supplied one, deletes the file that an earlier start wrote. */
export function placeAdminToken({ token, writtenTo }: AdminToken, tokenFile: string, givenFile: string | null): void {
  checkPrivateFile(tokenFile);
  if (writtenTo !== null) writePrivateFile(writtenTo, `${token.reveal()}\n`);
  else if (givenFile === null || !isSameFile(givenFile, tokenFile)) rmSync(tokenFile, { force: true });
}

/** Whether the operator supplied the token file of the data directory. */
function isSameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}
