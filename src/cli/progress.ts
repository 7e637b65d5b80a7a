/** Progress of long work, for people: a bar on the terminal's standard error, and a line now and then where it is no terminal. */
import type { Terminal } from './terminal.ts';

export interface Progress {
  /** `of` is null where nobody knows how much there is. */
  show(done: number, of: number | null): void;
  /** Takes the bar away. */
  end(): void;
}

const BAR_WIDTH = 30;
const REDRAWN_EVERY_MS = 100;
const TOLD_EVERY_MS = 10_000;

export function startProgress({ stderr }: Terminal, what: string): Progress {
  const isTerminal = stderr.isTTY === true;
  const everyMs = isTerminal ? REDRAWN_EVERY_MS : TOLD_EVERY_MS;
  // Short work needs none.
  let shownAt = performance.now();
  let isDrawn = false;
  return {
    show(done, of) {
      if (performance.now() - shownAt < everyMs) return;
      shownAt = performance.now();
      isDrawn = isTerminal;
      stderr.write(isTerminal ? `\r\u001b[K${draw(what, done, of)}` : `${what}: ${count(done, of)}\n`);
    },
    end() {
      if (isDrawn) stderr.write('\r\u001b[K');
      isDrawn = false;
    },
  };
}

function count(done: number, of: number | null): string {
  const number = (value: number): string => value.toLocaleString('en');
  return of === null ? number(done) : `${number(done)} of ${number(of)}`;
}

function draw(what: string, done: number, of: number | null): string {
  if (of === null || of === 0) return `${what}  ${count(done, of)}`;
  const filled = Math.round((Math.min(done, of) / of) * BAR_WIDTH);
  return `${what}  ${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)}  ${count(done, of)}`;
}
