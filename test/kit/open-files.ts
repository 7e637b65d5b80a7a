import { fstatSync, readdirSync, statSync } from 'node:fs';

/** How many descriptors of this process are open on the file. */
export function countOpen(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return 0;
  const isOfFile = (descriptor: string): boolean => {
    try {
      const { ino, dev } = fstatSync(Number(descriptor));
      return ino === found.ino && dev === found.dev;
    } catch {
      return false; // the descriptor of the list itself
    }
  };
  return readdirSync('/dev/fd').filter(isOfFile).length;
}
