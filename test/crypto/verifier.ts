/** The independent verifier, run as an auditor runs it. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Scope, temporaryFolder } from '../kit/folder.ts';
import type { LogHead } from './auditvectors.ts';

const SCRIPT = join(import.meta.dirname, '../../scripts/verify_audit.py');

export interface Verdict {
  /** 0 valid, 1 broken, 2 cannot tell. */
  readonly status: number;
  /** What it printed: the interface's verification result, or undefined where it printed nothing. */
  readonly result: ReturnType<typeof JSON.parse>;
  readonly errors: string;
}

export interface Evidence {
  /** Newline-delimited JSON as it was exported. */
  readonly text: string;
  readonly head: LogHead | string | null;
  readonly auditKey: string;
}

/** Newline-delimited JSON, as the service writes an export. */
export function toExport(entries: readonly object[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

export function runVerifier(scope: Scope, { text, head, auditKey }: Evidence): Promise<Verdict> {
  const folder = temporaryFolder(scope);
  const [exported, keyFile] = [join(folder, 'audit.ndjson'), join(folder, 'audit.key')];
  writeFileSync(exported, text);
  writeFileSync(keyFile, `${auditKey}\n`);
  const words = head === null || typeof head === 'string' ? head : `${head.seq} ${head.hmac} ${head.mac}`;
  const flags = [SCRIPT, exported, '--key-file', keyFile, ...(words === null ? [] : ['--head', words])];
  return new Promise((resolve) => {
    execFile('python3', flags, (error, stdout, stderr) => {
      const status = error === null ? 0 : Number(error.code);
      resolve({ status, result: stdout === '' ? undefined : JSON.parse(stdout), errors: stderr });
    });
  });
}
