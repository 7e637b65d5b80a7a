/**
 * Reads policy files: NAME.toml, NAME.json or NAME.yaml, one policy in each. Rejects every file that it cannot
 * interpret, because `policy apply --prune` deletes policies without a file. Rejects duplicate fields, aliases and
 * tags, which reviewers and programs could read differently. Messages never quote the text.
 */
import { isUtf8 } from 'node:buffer';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, extname, join, resolve, sep } from 'node:path';
import { policyName } from '../../core/grammars.ts';
import { nearest } from '../../core/operator-text.ts';
import { ruleBroken } from '../../engine/errors.ts';
import { UsageError } from '../../platform/errors.ts';
import { hasExpired, Policy, type PolicyDraft } from '../../vault/policies/policy.ts';
import { decodeUtf8, inputName, readRegularFile, readTextInput } from '../input.ts';
import { toCell } from '../output/cells.ts';
import type { Question } from '../prompt.ts';
import { readResource } from '../resource-input.ts';
import { printNotice, type Terminal } from '../terminal.ts';

/** Twice the size of the largest valid policy. */
const MAX_FILE_BYTES = 256 * 1024;
/** Extensions of documentation in the directory, which is skipped. */
const IGNORED_EXTENSIONS = ['.md', '.txt'];

const UNCHANGED = 'Nothing was changed.';

export interface PolicyFile {
  readonly file: string;
  readonly draft: PolicyDraft;
}

type Checked = { readonly draft: PolicyDraft } | { readonly problems: readonly Problem[] };

/** Returns the policies by file name. @throws UsageError with all problems */
export async function readPolicyDirectory(terminal: Terminal, directory: string): Promise<PolicyFile[]> {
  const root = await realpath(resolve(terminal.workingDirectory, directory)).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${directory}: cannot be read (${error.code ?? 'error'})`);
  });
  if (!(await stat(root)).isDirectory()) throw new UsageError(`${directory}: must be a directory of policy files`);
  // WHY hidden files are ignored: they belong to editors, version control and mounted volumes.
  const names = (await readdir(root)).filter(
    (name) => !name.startsWith('.') && !IGNORED_EXTENSIONS.includes(extname(name)),
  );
  const files: PolicyFile[] = [];
  const problems: Problem[] = [];
  for (const file of names.sort()) {
    const checked = await checkFile(root, file, join(directory, file));
    if ('problems' in checked) problems.push(...checked.problems);
    else if (!hasExpired(checked.draft, Date.now())) files.push({ file, draft: checked.draft });
    else printNotice(terminal, `${join(directory, file)}: the policy has expired, and the file is skipped.`);
  }
  problems.push(...sharedNames(files, directory));
  if (problems.length > 0) throw problemsError(problems, UNCHANGED);
  // An empty directory is probably the wrong one, and `--prune` would delete every policy.
  if (files.length === 0)
    throw new UsageError(
      `${directory}: contains no policy files`,
      'A policy is a file NAME.toml, NAME.json or NAME.yaml.',
    );
  return files;
}

/**
 * Reads one file in any directory, or standard input for `-`, as YAML, which includes JSON; `name` is the name of the
 * policy. @throws UsageError
 */
export async function readPolicyFile(question: Question, path: string, name: string): Promise<PolicyDraft> {
  const notation = path === '-' ? 'yaml' : notationOf(path);
  if (notation === null) throw new UsageError(`${path}: ${extensionRule(path)}`);
  const checked = await checkText(await readTextInput(question, path), { where: inputName(path), notation, name });
  if ('problems' in checked) throw problemsError(checked.problems, UNCHANGED);
  return checked.draft;
}

async function checkFile(root: string, file: string, where: string): Promise<Checked> {
  const problem = (what: string): Checked => ({ problems: [{ where, what }] });
  const path = join(root, file);
  const target = await realpath(path).catch(() => null);
  if (target === null) return problem('is a link to a missing file');
  // A mounted volume contains links within itself. A link out of the directory bypasses the review of its files.
  if (!target.startsWith(root + sep)) return problem('is a link that leaves the directory');
  if (!(await stat(target)).isFile()) return problem('must be a file; subdirectories are not read');
  const notation = notationOf(file);
  if (notation === null) return problem(extensionRule(file));
  const name = basename(file, extname(file));
  const nameRule = ruleBroken(() => policyName.parse(name, 'the name of the file'));
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
  const read = readResource(Policy, parsed.value, name);
  return 'draft' in read ? read : { problems: read.problems.map((what) => ({ where, what })) };
}

function notationOf(file: string): Notation | null {
  return NOTATIONS.find((notation) => extname(file) === `.${notation}`) ?? null;
}

function extensionRule(file: string): string {
  const meant = nearest(extname(file).slice(1).toLowerCase(), NOTATIONS);
  const hint = meant === null ? '' : `; did you mean .${meant}?`;
  return `a policy file must end in .${NOTATIONS.join(', .')}${hint}`;
}

function sharedNames(files: readonly PolicyFile[], directory: string): Problem[] {
  return [...Map.groupBy(files, ({ draft }) => draft.name).values()].flatMap(([first, ...others]) =>
    others.map(({ file }) => ({ where: join(directory, file), what: `has the same name as ${first?.file}` })),
  );
}

const NOTATIONS = ['toml', 'json', 'yaml'] as const;
type Notation = (typeof NOTATIONS)[number];

/** `line` is null when the parser does not report it. */
type Parsed = { readonly value: unknown } | { readonly problem: string; readonly line: number | null };

const DUPLICATE = 'has a duplicate field';
const MAX_BRACKETS = 1000;

export function parseNotation(text: string, notation: Notation): Promise<Parsed> {
  return { toml: parseToml, json: parseJson, yaml: parseYaml }[notation](text);
}

async function parseToml(text: string): Promise<Parsed> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    return { value: parse(text, { unsafeKeyBehaviour: 'throw' }) };
  } catch (error) {
    if (!(error instanceof TomlError)) return { problem: 'is not TOML', line: null };
    const isDuplicate = error.message.includes('redefine an already defined');
    return { problem: isDuplicate ? DUPLICATE : 'is not TOML', line: error.line };
  }
}

async function parseJson(text: string): Promise<Parsed> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const line = /line (\d+) column/.exec(String(error))?.[1];
    return { problem: 'is not JSON', line: line === undefined ? null : Number(line) };
  }
  // JSON.parse takes the last duplicate key. JSON is YAML, and the YAML parser reports duplicates.
  const again = await parseYaml(text);
  if ('problem' in again)
    return { ...again, problem: again.problem === DUPLICATE ? DUPLICATE : 'contains JSON that a policy does not need' };
  return { value };
}

const YAML_RULES: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'contains several documents; write one policy in each file',
  TAG_RESOLVE_FAILED: 'has a tag; remove it',
};

async function parseYaml(text: string): Promise<Parsed> {
  // A policy has three levels, and neither a pattern nor a name contains brackets.
  if ((text.match(/[[{]/g)?.length ?? 0) > MAX_BRACKETS) return { problem: 'is nested too deeply', line: null };
  const { isScalar, LineCounter, parseDocument, visit } = await import('yaml');
  const lines = new LineCounter();
  // WHY without logLevel silent: it would hide the error about a second document.
  const document = parseDocument(text, {
    schema: 'core',
    version: '1.2',
    // Compares every key with every other one; see below.
    uniqueKeys: false,
    stringKeys: true,
    prettyErrors: false,
    lineCounter: lines,
    resolveKnownTags: false,
  });
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined)
    return { problem: YAML_RULES[problem.code] ?? 'is not YAML', line: lines.linePos(problem.pos[0]).line };
  let duplicateAt: number | null = null;
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        const name = isScalar(key) ? key.value : key;
        if (seen.has(name)) {
          duplicateAt = isScalar(key) ? (key.range?.[0] ?? 0) : 0;
          return visit.BREAK;
        }
        seen.add(name);
      }
      return undefined;
    },
  });
  if (duplicateAt !== null) return { problem: DUPLICATE, line: lines.linePos(duplicateAt).line };
  try {
    return { value: document.toJS({ maxAliasCount: 0 }) };
  } catch {
    return { problem: 'has an alias; write the value instead', line: null };
  }
}

export interface Problem {
  readonly where: string;
  /** The field and the violated rule, never the value of the field. */
  readonly what: string;
}

const MAX_SHOWN = 50;

/** One error for all problems. `then` states which step was skipped because of them. */
export function problemsError(problems: readonly Problem[], then: string): UsageError {
  const lines = problems.slice(0, MAX_SHOWN).map(({ where, what }) => `${toCell(where)}: ${what}`);
  if (problems.length > MAX_SHOWN) lines.push(`and ${problems.length - MAX_SHOWN} more`);
  const head = problems.length === 1 ? '' : `${problems.length} problems\n`;
  return new UsageError(`${head}${lines.join('\n')}`, then);
}
