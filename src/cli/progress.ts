/**
 * The progress of long work, on standard error: a bar on a terminal, otherwise a line from time to time. The server
 * reports the progress of a verification.
 */
import type { Audit } from '../client/audit.ts';
import type { Terminal } from './terminal.ts';

interface Progress extends Disposable {
  readonly show: (done: number, of: number | null) => void;
}

const BAR_WIDTH = 30;
const REDRAW_INTERVAL_MS = 100;
const REPORT_INTERVAL_MS = 10_000;

export function startProgress({ stderr }: Terminal, what: string): Progress {
  const isTerminal = stderr.isTTY === true;
  const everyMs = isTerminal ? REDRAW_INTERVAL_MS : REPORT_INTERVAL_MS;
  // Nothing is shown before the first interval has passed.
  let shownAt = performance.now();
  let isDrawn = false;
  let hasEnded = false;
  return {
    show(done, of) {
      // A progress response can arrive after the work has ended.
      if (hasEnded || performance.now() - shownAt < everyMs) return;
      shownAt = performance.now();
      isDrawn = isTerminal;
      stderr.write(isTerminal ? `\r\u001b[K${draw(what, done, of)}` : `${what}: ${count(done, of)}\n`);
    },
    [Symbol.dispose]() {
      if (isDrawn) stderr.write('\r\u001b[K');
      isDrawn = false;
      hasEnded = true;
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

const PROGRESS_INTERVAL_MS = 500;

/** Shows how many entries, or rows of the state, the server has checked while it verifies the audit log. */
export async function withVerificationProgress<T>(
  { terminal, signal }: { readonly terminal: Terminal; readonly signal: AbortSignal },
  what: string,
  audit: Audit,
  verifying: Promise<T>,
): Promise<T> {
  using progress = startProgress(terminal, what);
  const polling = setInterval(() => {
    audit
      .readProgress({ signal })
      .then(({ entries_checked, entries_total, rows_checked }) => {
        const [done, of] = rows_checked == null ? [entries_checked ?? 0, entries_total] : [rows_checked, null];
        // WHY checked: a hostile server sends text, which would steer the terminal.
        if (Number.isSafeInteger(done) && (of === null || Number.isSafeInteger(of))) progress.show(done, of);
      })
      // Progress is optional; the verification reports real errors.
      .catch(() => undefined);
  }, PROGRESS_INTERVAL_MS);
  try {
    return await verifying;
  } finally {
    clearInterval(polling);
  }
}
