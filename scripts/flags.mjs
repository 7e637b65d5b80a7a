// What a Node that runs Leasehold needs to be, and with which flags the service is run: by `npm start`, by `leasehold server`, in
// the image. Plain JavaScript for Node 18 and later, because it is read before anything is installed; its types stand beside it.

export const OLDEST_NODE = '24.21.0';

export const HARDENING = ['--disable-sigusr1', '--disable-proto=throw'];
// WHY: a request's objects die before a larger nursery is collected, and a still larger one takes 27 MiB. What outlives it may fill
// 64 MiB before all is collected: each time its threads hold up everybody for 50 ms on two cores.
// A large vault's heap grows by 40 % before the next, not by twice. And V8 must not guess from a busy
// start that objects live long, as it does in two starts of five without the last flag, which costs a fifth more processor time for
// as long as it runs.
export const TUNING = [
  '--min-semi-space-size=8',
  '--max-semi-space-size=8',
  '--initial-old-space-size=64',
  '--heap-growing-percent=40',
  '--no-allocation-site-pretenuring',
];

/**
 * The command, run so that a crash leaves no core dump: that would hold the root key and every value. WHY a shell: Node cannot set the
 * limit. The program takes the shell's place, and so its id and its signals.
 */
export function withoutCoreDumps(program, words) {
  return ['/bin/sh', ['-c', 'ulimit -c 0 && exec "$0" "$@"', program, ...words]];
}

export function isNewEnough() {
  const [major, minor, patch] = process.versions.node.split('.').map(Number);
  const [oldestMajor, oldestMinor, oldestPatch] = OLDEST_NODE.split('.').map(Number);
  return (major - oldestMajor || minor - oldestMinor || patch - oldestPatch) >= 0;
}
