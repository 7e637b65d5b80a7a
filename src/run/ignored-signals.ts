/**
 * A program that shall ignore what was ignored when we were started. Node gives every child the system's defaults, so that something
 * between the two ignores them again, and becomes the program.
 */
import { spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import type { Program } from './executable.ts';

const ENV = '/usr/bin/env';
const SHELL = '/bin/sh';

/** What is to be started for it. */
export function withIgnoredSignals({
  file,
  words,
  ignored,
}: Program): readonly [file: string, words: readonly string[]] {
  if (ignored.length === 0) return [file, words];
  const numbers = ignored.map((signal) => constants.signals[signal]);
  // WHY env first: a shell keeps no variables whose names it could not write. What has a = in it env takes for a variable.
  if (!file.includes('=') && canIgnore()) return [ENV, [`--ignore-signal=${numbers.join(',')}`, '--', file, ...words]];
  return [SHELL, ['-c', `trap '' ${numbers.join(' ')}; exec "$0" "$@"`, file, ...words]];
}

/** GNU's can, and its likes; others know no such flag. */
function canIgnore(): boolean {
  return spawnSync(ENV, ['--ignore-signal=HUP', '--version'], { stdio: 'ignore', env: {} }).status === 0;
}
