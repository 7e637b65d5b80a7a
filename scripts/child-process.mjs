// Lets a process stand in for its child: signals go down, the way of ending comes up.
// Plain JavaScript for Node 18 and later, nothing but node: builtins: it runs before anything is installed.

import { constants } from 'node:os';

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Hands signals on to the child until it has ended. A terminal's Ctrl-C reaches the child twice, directly and from here.
 * Answers its exit code or signal, and the last signal that was handed on; rejects when it could not be started.
 */
export async function follow(child) {
  let received = null;
  const forward = (signal) => {
    received = signal;
    child.kill(signal);
  };
  for (const signal of FORWARDED) process.on(signal, forward);
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve({ code, signal, received }));
    });
  } finally {
    for (const signal of FORWARDED) process.off(signal, forward);
  }
}

/** Ends this process as the child ended, by the same signal where it was one. */
export function endAs({ code, signal }) {
  if (signal === null) process.exit(code);
  process.kill(process.pid, signal);
  // A few signals do not end a Node process (SIGPIPE, SIGUSR1): then as a shell reports it.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 500);
}
