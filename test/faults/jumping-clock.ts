/**
 * Preloaded into the service: its wall clock differs from the system's by the milliseconds in the file that CLOCK_FILE
 * names, which may change at any time. Timers and the monotonic clock are unchanged.
 */
import { existsSync, readFileSync } from 'node:fs';

const POLL_INTERVAL_MS = 5;
const file = process.env['CLOCK_FILE'] ?? '';
const SystemDate = Date;
let aheadMs = 0;

function read(): void {
  if (existsSync(file)) aheadMs = Number(readFileSync(file, 'utf8'));
}

class JumpingDate extends SystemDate {
  constructor(...values: [] | [string | number | Date]) {
    super(values[0] ?? JumpingDate.now());
  }

  static override now(): number {
    return SystemDate.now() + aheadMs;
  }
}

read();
globalThis.Date = JumpingDate as DateConstructor;
setInterval(read, POLL_INTERVAL_MS).unref();
