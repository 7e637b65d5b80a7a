/** The files with secrets for receivers of the log and of approvals. */
import { StartupError } from '../platform/errors.ts';
import { readSecretBytes, warnIfReadableByOthers } from '../platform/private-files.ts';

const TOKEN = /^[!-~]{1,8192}$/;

/** @throws StartupError */
export function readBearerToken(file: string, warn: (line: string) => void): string {
  const token = readTrimmed(file);
  if (!TOKEN.test(token)) throw new StartupError(`${file} must contain one token of printable characters.`);
  warnIfReadableByOthers(file, warn);
  return token;
}

/** @throws StartupError */
export function readTrimmed(file: string): string {
  return readSecretBytes(file).toString('utf8').trim();
}
