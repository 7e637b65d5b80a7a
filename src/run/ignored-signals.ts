/**
 * Starts a program with the signals ignored that this process inherited as ignored. Node resets them for every child,
 * so `env` or a shell ignores them again and then executes the program.
 */
import { spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import type { Program } from './executable.ts';

const ENV = '/usr/bin/env';
const SHELL = '/bin/sh';

/** Returns the command to start instead of the program's. */
export function withIgnoredSignals({
  file,
  words,
  ignored,
}: Program): readonly [file: string, words: readonly string[]] {
  if (ignored.length === 0) return [file, words];
  const numbers = ignored.map((signal) => constants.signals[signal]);
  // WHY env is preferred: a shell drops variables whose names it cannot assign. env takes a file name with = for an
  // assignment.
  if (!file.includes('=') && canIgnore()) return [ENV, [`--ignore-signal=${numbers.join(',')}`, '--', file, ...words]];
  return [SHELL, ['-c', `trap '' ${numbers.join(' ')}; exec "$0" "$@"`, file, ...words]];
}

/** Whether `env` has GNU's flag --ignore-signal. */
function canIgnore(): boolean {
  return spawnSync(ENV, ['--ignore-signal=HUP', '--version'], { stdio: 'ignore', env: {} }).status === 0;
}
