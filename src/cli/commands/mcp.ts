/** `mcp`: serves the Model Context Protocol as one agent. Nothing but the protocol goes to standard output. */

import { resolve } from 'node:path';
import type { AllowedCommand } from '../../mcp/allowlist.ts';
import type { Mcp } from '../../mcp/server.ts';
import { UsageError } from '../../platform/errors.ts';
import type { Command, Invocation } from '../command.ts';
import { Cancelled, EXIT } from '../errors.ts';
import { printNotice } from '../terminal.ts';
import { readVersion } from '../version.ts';

export const mcp: Command = {
  name: 'mcp',
  summary: 'Serves credentials to a model over MCP, which uses them without seeing them',
  about: [
    'Acts as one agent: give --agent NAME. An administrator’s token is refused.',
    'Speaks over standard input and output, or over streamable HTTP on loopback with --http. The model may always list what the agent may list, look at its leases and ask why something is denied. What else it may do is turned on here: writing values into private files, running the commands that you allow, and, last of all, having bare values.',
    'When it stops, what runs is ended, the files are removed and the leases revoked. docs/mcp.md has configurations for the usual clients, and the fields of the commands’ file.',
  ],
  flags: [
    {
      name: 'files-dir',
      value: 'DIR',
      help: 'lets the model have values written into this private directory',
      completes: 'directory',
    },
    { name: 'commands', value: 'FILE', help: 'lets the model run what this TOML file allows', completes: 'file' },
    { name: 'allow-values', value: null, help: 'lets the model have bare values, which then are in its conversation' },
    { name: 'http', value: 'HOST:PORT', help: 'serves over HTTP on this address of loopback, with a token' },
    {
      name: 'http-token-file',
      value: 'FILE',
      help: 'the token of --http; a new one is made and printed where it is left out',
      completes: 'file',
    },
  ],
  examples: [
    { line: 'leasehold mcp --agent coder --commands commands.toml', does: 'over standard input and output' },
    { line: 'leasehold mcp --agent coder --http 127.0.0.1:7800', does: 'over HTTP; prints address and token' },
  ],
  asksService: true,
  async run(invocation) {
    try {
      return await serve(invocation);
    } catch (error) {
      const lacksHint = error instanceof UsageError && error.hint === null && !(error instanceof Cancelled);
      throw lacksHint ? new UsageError(error.message, 'docs/mcp.md has examples.') : error;
    }
  },
};

async function serve(invocation: Invocation): Promise<number> {
  const { terminal, settings } = invocation;
  // Names and times in it are the service's.
  const log = (line: string): void => printNotice(terminal, `leasehold mcp: ${line}`);
  const place = invocation.flag('http');
  if (place === null && invocation.flag('http-token-file') !== null) {
    throw new UsageError('--http-token-file is of use only together with --http');
  }
  // WHY here: every other command starts without the protocol's library.
  const { openMcp } = await import('../../mcp/server.ts');
  const commands = await readCommands(invocation);
  const filesDir = invocation.flag('files-dir');
  const opened = await openMcp({
    client: invocation.connect(),
    filesDir: filesDir === null ? null : resolve(terminal.folder, filesDir),
    commands,
    allowsValues: invocation.isOn('allow-values'),
    version: readVersion(),
    log,
  });
  const { value: who } = settings.identity;
  if (who.kind === 'session')
    log(`the login ends at ${who.expiresAt}, and this server with it; --agent begins it anew`);
  if (invocation.isOn('allow-values')) log('the model may have bare values (--allow-values)');
  const agent = opened.agent ?? 'an agent that is not known yet';
  log(`acts as ${agent} at ${settings.address.value}; tools: ${opened.toolNames.join(', ')}`);
  // ORDER: whatever goes wrong, no value is left lying.
  const closeAndEnd = (error: unknown): void => {
    log(`a mistake that nothing caught; stopping (${error instanceof Error ? error.name : 'unknown'})`);
    void opened.close().finally(() => process.exit(EXIT.ERROR));
  };
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, closeAndEnd);
  try {
    if (place === null) await serveStandard(opened, invocation, log);
    else await serveHttp(opened, place, invocation, log);
  } finally {
    const left = await opened.close();
    if (left > 0) log(`${left} leases could not be revoked; they end by themselves`);
  }
  return EXIT.OK;
}

type Log = (line: string) => void;

async function serveStandard(opened: Mcp, { terminal, signal }: Invocation, log: Log): Promise<void> {
  if (terminal.stdin.isTTY === true) log('waits for a client on standard input; Ctrl-C stops');
  const { serveOverStdio } = await import('../../mcp/stdio.ts');
  await serveOverStdio(opened, terminal, signal, log);
}

async function serveHttp(opened: Mcp, text: string, invocation: Invocation, log: Log): Promise<void> {
  const { terminal, signal } = invocation;
  const { parseListenAddress, serveOverHttp } = await import('../../mcp/http.ts');
  const { makeToken, readToken } = await import('../../mcp/token.ts');
  const place = parseListenAddress(text);
  const file = invocation.flag('http-token-file');
  const token = file === null ? makeToken() : await readToken(resolve(terminal.folder, file));
  const serving = await serveOverHttp(opened, place, token, log);
  log(`listens on ${serving.url}; Ctrl-C stops`);
  // The one place where it is shown, to whoever started it; it is this server's alone.
  if (file === null) log(`token: ${token.reveal()}`);
  await new Promise<void>((stop) => {
    if (signal.aborted) stop();
    signal.addEventListener('abort', () => stop(), { once: true });
  });
  await serving.close();
}

async function readCommands(invocation: Invocation): Promise<AllowedCommand[]> {
  const file = invocation.flag('commands');
  if (file === null) return [];
  const { readAllowList } = await import('../../mcp/allowlist-file.ts');
  return readAllowList(resolve(invocation.terminal.folder, file));
}
