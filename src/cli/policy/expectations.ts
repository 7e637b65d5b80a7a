/** A file of expectations: `allow|deny AGENT ACTION PATH [ttl SECONDS]`, a row a line; what follows a `#` is for people. */

import { nearest } from '../../core/nearest.ts';
import { parseTtl, type TtlSeconds } from '../../core/policy.ts';
import { UsageError } from '../../platform/errors.ts';
import { parseDuration } from '../plural.ts';
import { DURATION_RULE } from './fields.ts';
import { type Problem, ruleBroken, throwIfProblems } from './problems.ts';
import { type AccessQuery, readQuestion } from './question.ts';

export interface Expectation {
  /** From 1. */
  readonly line: number;
  readonly allows: boolean;
  readonly question: AccessQuery;
  /** Exactly what a lease is given for at most; null where the row does not say. */
  readonly ttlSeconds: TtlSeconds | null;
}

const ROW = 'a row is: allow|deny AGENT ACTION PATH [ttl SECONDS]';

/** `file` is its name, for messages. @throws UsageError with everything that is wrong, each by its line */
export function readExpectations(text: string, file: string): Expectation[] {
  const expectations: Expectation[] = [];
  const problems: Problem[] = [];
  for (const [at, line] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    // No name and no path can have a #.
    const words = (line.split('#')[0] ?? '').split(/\s+/).filter((word) => word !== '');
    if (words.length === 0) continue;
    const read = readRow(words, at + 1);
    if ('expectation' in read) expectations.push(read.expectation);
    else problems.push(...read.problems.map((what) => ({ where: `${file}:${at + 1}`, what })));
  }
  throwIfProblems(problems, 'Nothing was asked.');
  // What expects nothing would always hold, and is rather the wrong file.
  if (expectations.length === 0) throw new UsageError(`${file}: holds no expectation`, ROW);
  return expectations;
}

type ReadRow = { readonly expectation: Expectation } | { readonly problems: readonly string[] };

function readRow(words: readonly string[], line: number): ReadRow {
  const [verdict = '', agent, action, path, ttlWord, ttlText, ...more] = words;
  const problems: string[] = [];
  if (verdict !== 'allow' && verdict !== 'deny') {
    const meant = nearest(verdict.toLowerCase(), ['allow', 'deny']);
    problems.push(`a row begins with allow or deny${meant === null ? '' : `; did you mean ${meant}?`}`);
  }
  if (agent === undefined || action === undefined || path === undefined)
    return { problems: [...problems, `AGENT, ACTION and PATH must all be there; ${ROW}`] };
  const read = readQuestion(agent, action, path);
  if ('problems' in read) problems.push(...read.problems);
  const ttlProblem = ttlWord === undefined ? null : ttlRule(verdict, ttlWord, ttlText);
  if (ttlProblem !== null) problems.push(ttlProblem);
  else if (more.length > 0) problems.push(`there is too much in the row; ${ROW}`);
  if (!('question' in read) || problems.length > 0) return { problems };
  const ttlSeconds = ttlText === undefined ? null : (parseDuration(ttlText) as TtlSeconds);
  return { expectation: { line, allows: verdict === 'allow', question: read.question, ttlSeconds } };
}

function ttlRule(verdict: string, word: string, text: string | undefined): string | null {
  if (word !== 'ttl') return `behind PATH may stand only ttl SECONDS; ${ROW}`;
  if (verdict === 'deny') return 'ttl: what is denied has none';
  const seconds = text === undefined ? null : parseDuration(text);
  return seconds === null ? `ttl: ${DURATION_RULE}` : ruleBroken(() => parseTtl(seconds, 'ttl'));
}

/** As the row stands in the file, its words parted by single blanks. */
export function toRow({ allows, question: { agent, action, path }, ttlSeconds }: Expectation): string {
  return `${allows ? 'allow' : 'deny'} ${agent} ${action} ${path}${ttlSeconds === null ? '' : ` ttl ${ttlSeconds}`}`;
}
