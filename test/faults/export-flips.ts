/** Single-bit flips of an export, verified by the independent verifier. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import type { KnownLog } from './known-log.ts';

const VERIFIER = join(import.meta.dirname, '../../scripts/verify_audit.py');
const FLIPPER = join(import.meta.dirname, 'flip_export.py');

export interface FoundFlips {
  /** Found as a break of the chain at the flipped line. */
  readonly broken: number;
  /** The flipped line is not an entry. */
  readonly rejected: number;
}

/** Flips so many random bits, one at a time. @throws Error for a flip that was accepted or found at another line */
export async function flipExport(scope: Scope, log: KnownLog, count: number, seed: number): Promise<FoundFlips> {
  const file = join(temporaryDirectory(scope), 'export.ndjson');
  writeFileSync(file, `${log.lines.join('\n')}\n`);
  const { PATH = '' } = process.env;
  const words = [FLIPPER, VERIFIER, file, log.head, String(seed), String(count)];
  const env = { PATH, LEASEHOLD_AUDIT_KEY: log.auditKeyText };
  const { stdout } = await promisify(execFile)('python3', words, { env });
  return JSON.parse(stdout);
}
