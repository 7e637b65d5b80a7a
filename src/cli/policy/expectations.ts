/**
 * Reads a file of expectations: rows `allow|deny AGENT ACTION PATH [METHOD URL] [ttl SECONDS]`, and comments after `#`.
 */
import type { Simulation } from '../../client/types.ts';
import { ruleBroken } from '../../engine/errors.ts';
import { parseDuration } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { inParallel } from '../../platform/waiting.ts';
import type { AccessQuery } from '../../vault/policies/access-explanation.ts';
import { parseTtl, type TtlSeconds } from '../../vault/policies/policy.ts';
import { DURATION_RULE } from '../resource-input.ts';
import { readQuestion, requestSuffix, type Simulator } from './access-query.ts';
import { type Problem, problemsError } from './policy-files.ts';

export interface Expectation {
  readonly line: number;
  readonly allows: boolean;
  readonly question: AccessQuery;
  /** The exact maximum lease duration; null when the row does not contain one. */
  readonly ttlSeconds: TtlSeconds | null;
}

const RULE = 'a row is: allow|deny AGENT ACTION PATH [METHOD URL] [ttl SECONDS]';
const ROW = /^(allow|deny)\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+([A-Z]+\s+\S+))?(?:\s+ttl\s+(\S+))?$/;

/** `file` is its name, for messages. @throws UsageError with all problems and their lines */
export function readExpectations(text: string, file: string): Expectation[] {
  const expectations: Expectation[] = [];
  const problems: Problem[] = [];
  for (const [at, line] of text.split('\n').entries()) {
    // No name, path or URL can contain a #.
    const row = line.replace(/#.*/, '').trim();
    if (row === '') continue;
    const read = readRow(row, at + 1);
    if ('expectation' in read) expectations.push(read.expectation);
    else problems.push(...read.problems.map((what) => ({ where: `${file}:${at + 1}`, what })));
  }
  if (problems.length > 0) throw problemsError(problems, 'Nothing was tested.');
  // An empty file would always pass, and is probably the wrong file.
  if (expectations.length === 0) throw new UsageError(`${file}: contains no expectations`, RULE);
  return expectations;
}

type ReadRow = { readonly expectation: Expectation } | { readonly problems: readonly string[] };

function readRow(row: string, line: number): ReadRow {
  const [, verdict, agent = '', action = '', path = '', request = null, ttlText] = ROW.exec(row) ?? [];
  if (verdict === undefined) return { problems: [RULE] };
  const allows = verdict === 'allow';
  const read = readQuestion(agent, action, path, request);
  const seconds = ttlText === undefined ? null : parseDuration(ttlText);
  const problems = [
    ...('problems' in read ? read.problems : []),
    ...(ttlText !== undefined && !allows ? ['ttl: a denial has none'] : []),
    ...(ttlText !== undefined && seconds === null ? [`ttl: ${DURATION_RULE}`] : []),
    (seconds !== null && ruleBroken(() => parseTtl(seconds, 'ttl'))) || [],
  ].flat();
  if (!('question' in read) || problems.length > 0) return { problems };
  return { expectation: { line, allows, question: read.question, ttlSeconds: seconds as TtlSeconds | null } };
}

export function toRow({ allows, question, ttlSeconds }: Expectation): string {
  const { agent, action, path } = question;
  return `${allows ? 'allow' : 'deny'} ${agent} ${action} ${path}${requestSuffix(question)}${ttlSeconds === null ? '' : ` ttl ${ttlSeconds}`}`;
}

const MAX_CONCURRENT = 8;

export interface TestResult {
  readonly line: number;
  readonly expected: string;
  readonly holds: boolean;
  /** The actual decision; null when the row holds. */
  readonly found: string | null;
  readonly reason: string;
}

/**
 * Returns the results in the order of the file. Throws the first error of `simulate`, and then sends no further query.
 */
export async function testExpectations(
  expectations: readonly Expectation[],
  simulate: Simulator,
): Promise<TestResult[]> {
  const results: TestResult[] = [];
  await inParallel(expectations, MAX_CONCURRENT, async (expectation) => {
    const { line, question } = expectation;
    const simulation = await simulate(question);
    const found = difference(expectation, simulation);
    results.push({ line, expected: toRow(expectation), holds: found === null, found, reason: simulation.reason });
  });
  return results.sort((one, other) => one.line - other.line);
}

function difference(
  { allows, ttlSeconds }: Expectation,
  { allowed, policy_name, lease_ttl }: Simulation,
): string | null {
  if (allowed !== allows) return allowed ? `allowed by ${policy_name} for up to ${lease_ttl} s` : 'denied';
  if (ttlSeconds === null || ttlSeconds === lease_ttl) return null;
  return `ttl ${lease_ttl} by ${policy_name}`;
}
