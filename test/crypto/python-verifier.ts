/** Runs the independent verifier as an auditor does. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Head } from '../../src/store/stored-data.ts';
import { headWords } from '../../src/vault/audit/audit-entry.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';

const SCRIPT = join(import.meta.dirname, '../../scripts/verify_audit.py');

export interface Verdict {
  /** 0 valid, 1 broken, 2 undecided. */
  readonly status: number;
  /** The printed verification result of the interface, or undefined if nothing was printed. */
  readonly result: ReturnType<typeof JSON.parse>;
  readonly errors: string;
}

export interface Evidence {
  /** Newline-delimited JSON as it was exported. */
  readonly text: string;
  readonly head: Head | string | null;
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
  const words = head === null || typeof head === 'string' ? head : headWords(head);
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

const LOAD = `
import base64, contextlib, importlib.util, io, json, sys
spec = importlib.util.spec_from_file_location('verify_audit', sys.argv[1])
verifier = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verifier)
given = json.load(sys.stdin)
`;

// Replaces the code below the script's `if __name__`: the status is returned instead of ending the process.
const RUNS = `
answer = []
for arguments in given:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = verifier.guarded(arguments)
    answer.append([status, out.getvalue(), err.getvalue()])
`;

/** Many runs in one process of Python, whose start costs more than a verification. */
export function runVerifierOnMany(scope: Scope, evidence: readonly Evidence[]): Promise<Verdict[]> {
  return runVerifierWith(evidence.map((each) => layDown(scope, each)));
}

/** Runs the verifier like `runVerifierOnMany`, each run with its own arguments. */
export async function runVerifierWith(runs: readonly (readonly string[])[]): Promise<Verdict[]> {
  const verdicts: [number, string, string][] = await callVerifier(RUNS, runs);
  return verdicts.map((verdict) => toVerdict(...verdict));
}

/** Runs code of Python with the script as the module `verifier` and the JSON as `given`; returns its `answer`. */
export function callVerifier(code: string, given: unknown): Promise<ReturnType<typeof JSON.parse>> {
  return new Promise((resolve, reject) => {
    const program = `${LOAD}${code}\njson.dump(answer, sys.stdout)\n`;
    const child = execFile('python3', ['-B', '-c', program, SCRIPT], (error, stdout, stderr) => {
      if (error !== null) return reject(new Error(stderr, { cause: error }));
      resolve(JSON.parse(stdout));
    });
    child.stdin?.end(JSON.stringify(given));
  });
}
