/** The `console` subcommand. */

import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { OPERATOR_PREFIX } from '../../core/names.ts';
import { toggle } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { ensurePrivateDir, writePrivateFile } from '../../platform/private-files.ts';
import { type Command, defineCommand, type Invocation } from '../command.ts';
import { escapeControls } from '../output/cells.ts';
import { userFilePath } from '../settings/files.ts';
import { printNotice, type Terminal } from '../terminal.ts';

function isOperator({ settings }: Invocation): boolean {
  const who = settings.identity.value;
  return (who.kind === 'agent' || who.kind === 'session') && who.name.startsWith(OPERATOR_PREFIX);
}

const consoleCommand = defineCommand({
  name: 'console',
  about: [
    'With --operator NAME, or after leasehold login --operator NAME, the CLI signs the browser in with a one-time code that is valid for one minute. Otherwise sign in there: with a passkey, with an identity provider, or with a token.',
  ],
  flags: { 'no-open': toggle('print the URL and do not open a browser') },
  printsNoRecords: true,
  async run(invocation, flags) {
    const { terminal, settings, signal } = invocation;
    const url = consoleUrl(settings.address.value);
    let link = url;
    if (isOperator(invocation)) {
      // WHY another client: this command's own session would end before the browser takes it over.
      const vault = await invocation.reconnect();
      const { code } = await vault.signIn.issueHandoff({ signal });
      link = `${url}#handoff=${code}`;
    } else if (settings.identity.value.kind === 'token') {
      printNotice(terminal, 'The CLI does not send the token to the browser. Paste it into the page.');
    }
    if (!flags['no-open'] && (await openInBrowser(terminal, link))) {
      printNotice(terminal, `The browser opens ${url}. If it does not, run leasehold console --no-open.`);
      return;
    }
    terminal.stdout.write(`${escapeControls(link)}\n`);
  },
});

/**
 * The URL of a console page on the server. Uses `localhost` for a loopback address, because passkeys work there.
 * @throws UsageError for a socket
 */
export function consoleUrl(address: string, page = ''): string {
  const url = URL.parse(address);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError(
      'A browser cannot reach a Unix socket.',
      'Give the URL of a proxy in front of the server with --address.',
    );
  const isLocal = /^(?:127(?:\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  if (isLocal && url.protocol === 'http:') url.hostname = 'localhost';
  return `${url.origin}/console/${page}`;
}

const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer' };

/**
 * Opens the page in the browser, through a private file. Resolves to whether a program was started. WHY not by the URL:
 * other users of this machine see the arguments of programs, and the URL contains a code that signs in.
 */
async function openInBrowser(terminal: Terminal, url: string): Promise<boolean> {
  const file = join(dirname(userFilePath(terminal)), 'console.html');
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

export const COMMANDS: readonly Command[] = [consoleCommand];
