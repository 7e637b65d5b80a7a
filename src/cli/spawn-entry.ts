/** Runs the service and its database tools as separate processes. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { HARDENING, TUNING, withoutCoreDumps } from '../../scripts/flags.mjs';
import { readIgnored, stopSignals } from '../platform/inherited-signals.ts';
import type { Terminal } from './terminal.ts';

/** Resolves to the exit code. The program inherits standard input and output. */
export async function runEntry(name: string, words: readonly string[], { environment }: Terminal): Promise<number> {
  const file = join(import.meta.dirname, '..', `${name}.ts`);
  const program = existsSync(file) ? file : file.replace(/\.ts$/, '.js');
  const [shell, command] = withoutCoreDumps(process.execPath, [...HARDENING, ...TUNING, program, ...words]);
  const child = spawn(shell, command, {
    stdio: 'inherit',
    env: { ...environment, INIT_CWD: environment['INIT_CWD'] ?? process.cwd() },
  });
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  const signals = stopSignals(readIgnored(environment));
  for (const signal of signals) process.on(signal, forward);
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL']));
    });
  } finally {
    for (const signal of signals) process.off(signal, forward);
  }
}
