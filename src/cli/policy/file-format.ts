/**
 * Parses the text of a policy file (TOML, JSON or YAML) into plain data. Rejects duplicate fields, aliases and tags,
 * which reviewers and programs could read differently. Messages never quote the text.
 */
import { UsageError } from '../../platform/errors.ts';
import { toCell } from '../output/cells.ts';

export const NOTATIONS = ['toml', 'json', 'yaml'] as const;
export type Notation = (typeof NOTATIONS)[number];

/** `line` is null when the parser does not report it. */
export type Parsed = { readonly value: unknown } | { readonly problem: string; readonly line: number | null };

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
