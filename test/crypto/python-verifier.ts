/** Runs the independent verifier as an auditor does. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import type { LogHead } from './audit-vectors.ts';

const SCRIPT = join(import.meta.dirname, '../../scripts/verify_audit.py');

export interface Verdict {
  /** 0 valid, 1 broken, 2 undecided. */
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

/** Lays the evidence down as files; returns the arguments that name it. */
function layDown(scope: Scope, { text, head, auditKey }: Evidence): string[] {
  const directory = temporaryDirectory(scope);
  const [exported, keyFile] = [join(directory, 'audit.ndjson'), join(directory, 'audit.key')];
  writeFileSync(exported, text);
  writeFileSync(keyFile, `${auditKey}\n`);
  const words = head === null || typeof head === 'string' ? head : `${head.seq} ${head.hmac} ${head.mac}`;
  return [exported, '--key-file', keyFile, ...(words === null ? [] : ['--head', words])];
}

function toVerdict(status: number, stdout: string, errors: string): Verdict {
  return { status, result: stdout === '' ? undefined : JSON.parse(stdout), errors };
}

export function runVerifier(scope: Scope, evidence: Evidence): Promise<Verdict> {
  const flags = [SCRIPT, ...layDown(scope, evidence)];
  return new Promise((resolve) => {
    execFile('python3', flags, (error, stdout, stderr) => {
      resolve(toVerdict(error === null ? 0 : Number(error.code), stdout, stderr));
    });
  });
}

// Replaces the code below the script's `if __name__`: the status is returned instead of ending the process.
const MANY = `
import contextlib, importlib.util, io, json, sys
spec = importlib.util.spec_from_file_location('verify_audit', sys.argv[1])
verifier = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verifier)
verdicts = []
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = verifier.guarded(arguments)
    verdicts.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(verdicts))
`;

/** Many runs in one process of Python, whose start costs more than a verification. */
export function runVerifierOnMany(scope: Scope, evidence: readonly Evidence[]): Promise<Verdict[]> {
  const runs = evidence.map((each) => layDown(scope, each));
  return new Promise((resolve, reject) => {
    const child = execFile('python3', ['-B', '-c', MANY, SCRIPT], (error, stdout, stderr) => {
      if (error !== null) return reject(new Error(stderr, { cause: error }));
      const verdicts: [number, string, string][] = JSON.parse(stdout);
      resolve(verdicts.map((verdict) => toVerdict(...verdict)));
    });
    child.stdin?.end(JSON.stringify(runs));
  });
}
