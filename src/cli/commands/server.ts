/** The `server` and `status` subcommands. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { extname, join } from 'node:path';
import { HARDENING, TUNING, withoutCoreDumps } from '../../../scripts/flags.mjs';
import { LeaseholdError } from '../../client/errors.ts';
import { readIgnored, stopSignals } from '../../platform/inherited-signals.ts';
import { type Command, defineCommand } from '../command.ts';
import { EXIT } from '../errors.ts';
import type { Terminal } from '../terminal.ts';

const status = defineCommand({
  name: 'status',
  about: ['Needs no token. The exit code is 2 if the server is not healthy.'],
  async run(invocation) {
    const { settings, signal } = invocation;
    const vault = invocation.connect(true);
    const address = settings.address.value;
    try {
      const { status } = await vault.health({ signal });
      await invocation.output.record({ status, address });
      return EXIT.OK;
    } catch (error) {
      if (!(error instanceof LeaseholdError) || error.status === null || error.code === 'INVALID_RESPONSE') throw error;
      await invocation.output.record({ status: error.message, address });
      return EXIT.ERROR;
    }
  },
});

/** Resolves to the exit code. The program inherits standard input and output. */
async function runServer(words: readonly string[], { environment }: Terminal): Promise<number> {
  const program = join(import.meta.dirname, '../../bin', `server${extname(import.meta.filename)}`);
  const [shell, command] = withoutCoreDumps(process.execPath, [...HARDENING, ...TUNING, program, ...words]);
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  const signals = stopSignals(readIgnored(environment));
  // ORDER: before the program starts, so that no signal is lost.
  for (const signal of signals) process.on(signal, forward);
  const child = spawn(shell, command, {
    stdio: 'inherit',
    env: { ...environment, INIT_CWD: environment['INIT_CWD'] ?? process.cwd() },
  });
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL']));
    });
  } finally {
    for (const signal of signals) process.off(signal, forward);
  }
}

const server = defineCommand({
  name: 'server',
  about: ['For its flags, run leasehold server --help.'],
  isLocal: true,
  takesAllWords: true,
  handlesSignals: true,
  run: ({ rest, terminal }) => runServer(rest, terminal),
});

export const COMMANDS: readonly Command[] = [server, status];
