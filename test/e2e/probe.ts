// A probe among the load: sends a request every few milliseconds on a separate connection and records the results.
import { Agent, request } from 'node:http';
import type { Scope } from '../kit/directory.ts';

interface Sight {
  /** 0 where the connection failed. */
  readonly status: number;
}

export interface Probe {
  /** The sights since the last `forget`. */
  seen(): readonly Sight[];
  forget(): void;
}

const PAUSE_MS = 10;

export function startProbe(scope: Scope, address: string, path: string, token: string | null): Probe {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  let seen: Sight[] = [];
  let next: NodeJS.Timeout | undefined;
  let isOver = false;
  const ask = (): void => {
    const note = (status: number): void => {
      if (isOver) return;
      seen.push({ status });
      next = setTimeout(ask, PAUSE_MS);
    };
    request(address + path, { agent, headers }, (response) => {
      response.resume();
      response.on('end', () => note(response.statusCode ?? 0));
    })
      .on('error', () => note(0))
      .end();
  };
  ask();
  scope.after(() => {
    isOver = true;
    clearTimeout(next);
    agent.destroy();
  });
  return {
    seen: () => seen,
    forget() {
      seen = [];
    },
  };
}
