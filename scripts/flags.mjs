// The oldest supported Node, and the flags of the server in `npm start`, `leasehold server` and the image. Plain
// JavaScript for Node 18 and later, because it is read before anything is installed; its types are in flags.d.mts.

export const OLDEST_NODE = '24.21.0';

export const HARDENING = ['--disable-sigusr1', '--disable-proto=delete'];
// WHY a semi-space of 8 MiB: a request's objects die before it is collected, and a larger one takes 27 MiB more memory.
// WHY an old space of 64 MiB: a major collection blocks all requests for 50 ms on two cores. The heap of a large vault
// grows by 40 % before the next one, instead of doubling. WHY no pretenuring: in two of five busy startups V8 concludes
// that objects live long, which costs a fifth more processor time until the process ends.
export const TUNING = [
  '--min-semi-space-size=8',
  '--max-semi-space-size=8',
  '--initial-old-space-size=64',
  '--heap-growing-percent=40',
  '--no-allocation-site-pretenuring',
];

/**
 * The command without core dumps, which would contain the root key and every value. WHY a shell: Node cannot set the
 * limit. The shell becomes the program, which keeps its process id.
 */
export function withoutCoreDumps(program, words) {
  return ['/bin/sh', ['-c', 'ulimit -c 0 && exec "$0" "$@"', program, ...words]];
}

export function isNewEnough() {
  const [major, minor, patch] = process.versions.node.split('.').map(Number);
  const [oldestMajor, oldestMinor, oldestPatch] = OLDEST_NODE.split('.').map(Number);
  return (major - oldestMajor || minor - oldestMinor || patch - oldestPatch) >= 0;
}
