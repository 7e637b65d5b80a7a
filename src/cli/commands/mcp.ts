/** `leasehold mcp`: serves the Model Context Protocol as one agent. Standard output carries only the protocol. */

import { OPERATOR_PREFIX } from '../../core/names.ts';
import { UsageError } from '../../platform/errors.ts';
import { readVersion } from '../../platform/installation.ts';
import { type Command, defineCommand, type Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { printNotice } from '../terminal.ts';

const mcp = defineCommand({
  name: 'mcp',
  about: [
    'The MCP server acts as one agent: give --agent NAME. It rejects an administrator’s token.',
    'It serves standard input and output. The model can list the credentials that the agent may use, make HTTP requests with them, and ask why access is denied. No tool returns a value. A program that needs a credential is started with: leasehold run.',
  ],
  examples: {
    'leasehold mcp --agent coder': 'serve standard input and output',
  },
  printsNoRecords: true,
  returnsPending: true,
  run: serve,
});

async function serve(invocation: Invocation): Promise<void> {
  const { terminal, settings } = invocation;
  // printNotice escapes the names in the line, which the vault controls.
  const log = (line: string): void => printNotice(terminal, `leasehold mcp: ${line}`);
  const { value: who } = settings.identity;
  if ('name' in who && who.name.startsWith(OPERATOR_PREFIX)) {
    throw new UsageError('a model must not act as an operator', 'Use --agent NAME.');
  }
  // WHY dynamic: other commands start faster without the MCP library.
  const { openMcp, serveOverStdio } = await import('../../mcp/mcp-server.ts');
  const { value: address } = settings.address;
  const opened = await openMcp({
    client: invocation.connect(),
    serverUrl: address.startsWith('unix:') ? null : address.replace(/\/+$/, ''),
    version: readVersion(),
    log,
  });
  if (who.kind === 'session')
    log(`the login expires at ${who.expiresAt}, and the server stops then; use --agent to log in again automatically`);
  log(`acts as ${opened.agent ?? 'an agent not known yet'} at ${address}`);
  // ORDER: registered before serving, so that calls are aborted after any error.
  const closeAndEnd = (error: unknown): void => {
    log(`stopping after an unexpected error (${error instanceof Error ? error.name : 'unknown'})`);
    void opened.close().finally(() => process.exit(EXIT.ERROR));
  };
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, closeAndEnd);
  try {
    if (terminal.stdin.isTTY === true) log('waiting for a client on standard input; press Ctrl-C to stop');
    await serveOverStdio(opened, terminal, invocation.signal, log);
  } finally {
    await opened.close();
  }
}

export const COMMANDS: readonly Command[] = [mcp];
