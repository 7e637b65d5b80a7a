/** The address of the console, and how a browser gets there. */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UsageError } from '../platform/errors.ts';
import { ensurePrivateDir, writePrivateFile } from '../platform/private-files.ts';
import { userFilePath } from './settings/files.ts';
import { userDirsOf } from './settings/resolve.ts';
import type { Terminal } from './terminal.ts';

/**
 * The page of the console at the address of the service: at `localhost` instead of an address of this machine, because
 * passkeys work there. @throws UsageError for a socket
 */
export function consoleUrl(address: string, page = ''): string {
  const url = URL.parse(address);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError('A browser cannot reach a Unix socket.', 'Name the address that a proxy gives it: --address');
  const isLocal = /^(?:127(?:\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  if (isLocal && url.protocol === 'http:') url.hostname = 'localhost';
  return `${url.origin}/console/${page}`;
}

const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer' };

/**
 * Opens the page in the browser, by a private file. WHY not by the address: other users of this machine see the
 * arguments of programs, and the address has a code that signs in. Resolves to whether a program was started.
 */
export async function openInBrowser(terminal: Terminal, url: string): Promise<boolean> {
  const file = join(dirname(userFilePath(userDirsOf(terminal))), 'console.html');
  ensurePrivateDir(dirname(file));
  writePrivateFile(file, `<!doctype html><meta http-equiv="refresh" content="0; url=${url}">\n`);
  const child = spawn(OPENERS[process.platform] ?? 'xdg-open', [pathToFileURL(file).href], {
    stdio: 'ignore',
    detached: true,
  });
  return new Promise((resolve) => {
    child.once('error', () => resolve(false));
    child.once('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}
