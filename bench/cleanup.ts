// What a run must clean up after itself, however it ends. Only processes and folders that it made.

import type { Scope } from '../test/kit/directory.ts';

type CleanUp = () => unknown;

export interface BenchScope extends Scope {
  end(): Promise<void>;
}

export function openScope(): BenchScope {
  const pending: CleanUp[] = [];
  return {
    after(cleanUp) {
      if (cleanUp !== undefined) pending.push(cleanUp as CleanUp);
    },
    async end() {
      for (let last = pending.pop(); last !== undefined; last = pending.pop()) await last();
    },
  };
}
