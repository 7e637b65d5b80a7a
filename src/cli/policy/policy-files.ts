/**
 * A folder of policies, one a file, called as the policy is: NAME.toml, NAME.json or NAME.yaml. Strict, because a file
 * that were passed over would be a policy that is missing, and with `--prune` one that is deleted.
 */

import { isUtf8 } from 'node:buffer';
import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { basename, extname, join, resolve, sep } from 'node:path';
import { parsePolicyName } from '../../core/names.ts';
import { nearest } from '../../core/nearest.ts';
import type { PolicyDraft } from '../../core/policy.ts';
import { UsageError } from '../../platform/errors.ts';
import { decodeUtf8, readRegularFile, readTextInput } from '../input.ts';
import type { Question } from '../prompt.ts';
import { readFields } from './fields.ts';
import { NOTATIONS, type Notation, parseNotation } from './file-format.ts';
import { type Problem, ruleBroken, throwIfProblems } from './problems.ts';

/** Twice as long as the longest policy there can be. */
const MAX_FILE_BYTES = 256 * 1024;
/** Beside the policies, for their readers. */
const PASSED_OVER = ['.md', '.txt'];

export interface PolicyFile {
  /** Within the folder. */
  readonly file: string;
  readonly draft: PolicyDraft;
}

type Checked = { readonly draft: PolicyDraft } | { readonly problems: readonly Problem[] };

/**
 * All policies of the folder, by name; `from` is where the caller stands. @throws UsageError that holds everything that
 * is wrong in it
 */
export async function readPolicyFolder(folder: string, from = '.'): Promise<PolicyFile[]> {
  const root = await realpath(resolve(from, folder)).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${folder}: there is no such folder that can be read (${error.code ?? 'error'})`);
  });
  if (!(await stat(root)).isDirectory()) throw new UsageError(`${folder}: must be a folder with a policy in each file`);
  // WHY hidden ones are not looked at: they belong to editors, to version control, and to how volumes are mounted.
  const names = (await readdir(root)).filter((name) => !name.startsWith('.') && !PASSED_OVER.includes(extname(name)));
  const files: PolicyFile[] = [];
  const problems: Problem[] = [];
  for (const file of names.sort()) {
    const checked = await checkFile(root, file, join(folder, file));
    if ('problems' in checked) problems.push(...checked.problems);
    else files.push({ file, draft: checked.draft });
  }
  throwIfProblems([...problems, ...sharedNames(files, folder)], 'Nothing was changed.');
  // A wrong folder would otherwise say that every policy is to go.
  if (files.length === 0)
    throw new UsageError(`${folder}: holds no policy`, 'A policy is a file NAME.toml, NAME.json or NAME.yaml.');
  return files;
}

/** One file, wherever it lies; `name` is the policy's. @throws UsageError */
export async function readPolicyFile(question: Question, path: string, name: string): Promise<PolicyDraft> {
  const notation = notationOf(path);
  if (notation === null) throw new UsageError(`${path}: ${extensionRule(path)}`);
  const checked = await checkText(await readTextInput(question, path), { where: path, notation, name });
  if ('draft' in checked) return checked.draft;
  throwIfProblems(checked.problems, 'Nothing was changed.');
  throw new Error('a file without a policy had no problem');
}

/** From standard input: YAML, and so JSON too. @throws UsageError */
export async function readPolicyText(text: string, name: string): Promise<PolicyDraft> {
  const checked = await checkText(text, { where: 'standard input', notation: 'yaml', name });
  if ('draft' in checked) return checked.draft;
  throwIfProblems(checked.problems, 'Nothing was changed.');
  throw new Error('a text without a policy had no problem');
}

/** `where` is the file as messages call it. */
async function checkFile(root: string, file: string, where: string): Promise<Checked> {
  const problem = (what: string): Checked => ({ problems: [{ where, what }] });
  const place = join(root, file);
  const isLink = (await lstat(place)).isSymbolicLink();
  const target = await realpath(place).catch(() => null);
  if (target === null) return problem('is a link to nothing');
  // A mounted volume links within itself. What points elsewhere was reviewed by nobody.
  if (isLink && !target.startsWith(root + sep)) return problem('is a link that leads out of the folder');
  if (!(await stat(target)).isFile()) return problem('must be a file; subdirectories are not read');
  const notation = notationOf(file);
  if (notation === null) return problem(extensionRule(file));
  const name = basename(file, extname(file));
  const nameRule = ruleBroken(() => parsePolicyName(name, 'the name of the file'));
  if (nameRule !== null) return problem(nameRule);
  const bytes = await readRegularFile(target, MAX_FILE_BYTES).catch(() => null);
  if (bytes === 'large') return problem(`must be at most ${MAX_FILE_BYTES / 1024} KiB`);
  if (bytes === null || bytes === 'other' || !isUtf8(bytes)) return problem('cannot be read as text in UTF-8');
  return checkText(decodeUtf8(bytes, where), { where, notation, name });
}

async function checkText(
  text: string,
  { where, notation, name }: { where: string; notation: Notation; name: string },
): Promise<Checked> {
  const parsed = await parseNotation(text, notation);
  if ('problem' in parsed) {
    const line = parsed.line === null ? '' : `:${parsed.line}`;
    return { problems: [{ where: `${where}${line}`, what: parsed.problem }] };
  }
  const read = readFields(parsed.value, name);
  return 'draft' in read ? read : { problems: read.problems.map((what) => ({ where, what })) };
}

function notationOf(file: string): Notation | null {
  return NOTATIONS.find((notation) => extname(file) === `.${notation}`) ?? null;
}

function extensionRule(file: string): string {
  const meant = nearest(extname(file).slice(1).toLowerCase(), NOTATIONS);
  const hint = meant === null ? '' : `; did you mean .${meant}?`;
  return `a policy’s file must end in .${NOTATIONS.join(', .')}${hint}`;
}

function sharedNames(files: readonly PolicyFile[], folder: string): Problem[] {
  const first = new Map<string, string>();
  return files.flatMap(({ file, draft }) => {
    const other = first.get(draft.name);
    if (other === undefined) first.set(draft.name, file);
    return other === undefined ? [] : [{ where: join(folder, file), what: `names the policy that ${other} names` }];
  });
}
