// Makes a process act like its child: it forwards signals and exits with the child's exit code or signal.
// Plain JavaScript for Node 18 and later with node: builtins only: it runs before anything is installed.

import { constants } from 'node:os';

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Forwards signals to the child that `start` starts, until it exits. Ctrl-C in a terminal reaches the child twice:
 * directly and from here. Resolves to its exit code or signal, and the last forwarded signal. Rejects if the child
 * could not be started.
 */
export async function follow(start) {
  let received = null;
  let child;
  const forward = (signal) => {
    received = signal;
    child.kill(signal);
  };
  // ORDER: before the start. The child may be at work before this process continues, and a signal that ended this
  // process then would leave the child behind.
  for (const signal of FORWARDED) process.on(signal, forward);
  try {
    child = start();
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve({ code, signal, received }));
    });
  } finally {
    for (const signal of FORWARDED) process.off(signal, forward);
  }
}

/** Ends this process with the child's exit code or signal. */
export function exitLike({ code, signal }) {
  if (signal === null) process.exit(code);
  process.kill(process.pid, signal);
  // A few signals do not end a Node process (SIGPIPE, SIGUSR1): exit with the code of a shell.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 500);
}
