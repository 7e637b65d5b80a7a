/** `leasehold mcp`: serves the Model Context Protocol as one agent. Standard output carries only the protocol. */

import { once } from 'node:events';
import { resolve } from 'node:path';
import { OPERATOR_PREFIX } from '../../core/names.ts';
import type { Mcp } from '../../mcp/server.ts';
import { UsageError } from '../../platform/errors.ts';
import { readVersion } from '../../platform/version.ts';
import { defineCommand, type FlagValues, type Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { text, toggle } from '../flags.ts';
import { printNotice } from '../terminal.ts';

const FLAGS = {
  'files-dir': text('DIR', 'let the model write values to files in this private directory'),
  commands: text('FILE', 'let the model run the commands that this TOML file allows'),
  'allow-values': toggle('let the model read bare values, which then appear in its conversation'),
  http: text('HOST:PORT', 'serve HTTP on this loopback address, protected by a token'),
  'http-token-file': text('FILE', 'token for --http (default: print a new one)'),
};

export const mcp = defineCommand({
  name: 'mcp',
  about: [
    'The server acts as one agent: give --agent NAME. It rejects an administrator’s token.',
    'It serves standard input and output, or with --http streamable HTTP on loopback. The model can always make HTTP requests with credentials that the agent may use, without seeing them; list the credentials that the agent may list; show its leases; and ask why access is denied. Flags enable what gives away values: running allowed commands, writing values to private files, and reading bare values.',
    'When the server stops, it ends running commands, deletes the files and revokes the leases. docs/mcp.md has configurations for common clients and describes the commands file.',
  ],
  flags: FLAGS,
  examples: [
    { line: 'leasehold mcp --agent coder', does: 'serve standard input and output; no tool gives away a value' },
    { line: 'leasehold mcp --agent coder --commands commands.toml', does: 'also let the model run allowed commands' },
    { line: 'leasehold mcp --agent coder --http 127.0.0.1:7800', does: 'serve HTTP and print the address and token' },
  ],
  printsNoRecords: true,
  returnsPending: true,
  run: serve,
});

async function serve(invocation: Invocation, flags: FlagValues<typeof FLAGS>): Promise<void> {
  const { terminal, settings } = invocation;
  // printNotice escapes the names in it, which the service controls.
  const log = (line: string): void => printNotice(terminal, `leasehold mcp: ${line}`);
  const { http: address, 'files-dir': filesDir, 'allow-values': allowsValues, 'http-token-file': tokenFile } = flags;
  if (address === null && tokenFile !== null) {
    throw new UsageError('--http-token-file requires --http');
  }
  // WHY dynamic: other commands start faster without the MCP library.
  const { openMcp } = await import('../../mcp/server.ts');
  const { readAllowList } = await import('../../mcp/allowlist.ts');
  const commands =
    flags.commands === null ? [] : await readAllowList(resolve(terminal.workingDirectory, flags.commands));
  const identity = settings.identity.value;
  if ('name' in identity && identity.name.startsWith(OPERATOR_PREFIX)) {
    throw new UsageError('a model must not act as an operator', 'Use --agent NAME.');
  }
  const opened = await openMcp({
    client: invocation.connect(),
    consoleAddress: settings.address.value.startsWith('unix:') ? null : settings.address.value.replace(/\/+$/, ''),
    filesDir: filesDir === null ? null : resolve(terminal.workingDirectory, filesDir),
    commands,
    allowsValues,
    version: readVersion(),
    log,
  });
  const { value: who } = settings.identity;
  if (who.kind === 'session')
    log(`the login expires at ${who.expiresAt}, and the server stops then; use --agent to log in again automatically`);
  if (allowsValues) log('the model can read bare values (--allow-values)');
  const agent = opened.agent ?? 'an agent not known yet';
  log(`acts as ${agent} at ${settings.address.value}; tools: ${opened.toolNames.join(', ')}`);
  // ORDER: registered before serving, so that files and leases are cleaned up after any error.
  const closeAndEnd = (error: unknown): void => {
    log(`stopping after an unexpected error (${error instanceof Error ? error.name : 'unknown'})`);
    void opened.close().finally(() => process.exit(EXIT.ERROR));
  };
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, closeAndEnd);
  try {
    if (address === null) {
      if (terminal.stdin.isTTY === true) log('waiting for a client on standard input; press Ctrl-C to stop');
      const { serveOverStdio } = await import('../../mcp/stdio.ts');
      await serveOverStdio(opened, terminal, invocation.signal, log);
    } else await serveHttp(opened, address, tokenFile, invocation, log);
  } finally {
    const left = await opened.close();
    if (left > 0) log(`${left} leases could not be revoked; they expire on their own`);
  }
}

async function serveHttp(
  opened: Mcp,
  address: string,
  tokenFile: string | null,
  { terminal, signal }: Invocation,
  log: (line: string) => void,
): Promise<void> {
  const { parseListenAddress, serveOverHttp } = await import('../../mcp/http.ts');
  const { makeToken, readToken } = await import('../../mcp/token.ts');
  const listenAddress = parseListenAddress(address);
  const token = tokenFile === null ? makeToken() : await readToken(resolve(terminal.workingDirectory, tokenFile));
  const serving = await serveOverHttp(opened, listenAddress, token, log);
  log(`listening on ${serving.url}; press Ctrl-C to stop`);
  // Nothing else shows the token, which is valid for this server only.
  if (tokenFile === null) log(`token: ${token.reveal()}`);
  if (!signal.aborted) await once(signal, 'abort');
  await serving.close();
}
