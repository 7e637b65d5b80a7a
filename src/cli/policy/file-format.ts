/**
 * From the text of a policy's file to plain data: TOML, JSON or YAML, each read strictly. What is twice, aliased or
 * tagged is refused, because people who review it and programs that read it would see different policies. No message
 * repeats a piece of the text.
 */

export const NOTATIONS = ['toml', 'json', 'yaml'] as const;
export type Notation = (typeof NOTATIONS)[number];

/** `line` is null when the parser does not report it. */
export type Parsed = { readonly value: unknown } | { readonly problem: string; readonly line: number | null };

const TWICE = 'has a field twice';

export async function parseNotation(text: string, notation: Notation): Promise<Parsed> {
  switch (notation) {
    case 'toml':
      return parseToml(text);
    case 'json':
      return parseJson(text);
    case 'yaml':
      return parseYaml(text);
  }
}

async function parseToml(text: string): Promise<Parsed> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    return { value: parse(text, { unsafeKeyBehaviour: 'throw' }) };
  } catch (error) {
    if (!(error instanceof TomlError)) return { problem: 'is not TOML', line: null };
    const isTwice = error.message.includes('redefine an already defined');
    return { problem: isTwice ? TWICE : 'is not TOML', line: error.line };
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
    return { ...again, problem: again.problem === TWICE ? TWICE : 'is JSON of a kind that no policy needs' };
  return { value };
}

async function parseYaml(text: string): Promise<Parsed> {
  const { LineCounter, parseDocument } = await import('yaml');
  const lines = new LineCounter();
  // WHY without logLevel silent: it would hide the error about a second document.
  const document = parseDocument(text, {
    schema: 'core',
    version: '1.2',
    uniqueKeys: true,
    stringKeys: true,
    prettyErrors: false,
    lineCounter: lines,
    resolveKnownTags: false,
  });
  const fault = document.errors[0] ?? document.warnings[0];
  if (fault !== undefined) return { problem: yamlRule(fault.code), line: lines.linePos(fault.pos[0]).line };
  try {
    return { value: document.toJS({ maxAliasCount: 0 }) };
  } catch {
    return { problem: 'has an alias; write it out', line: null };
  }
}

function yamlRule(code: string): string {
  if (code === 'DUPLICATE_KEY') return TWICE;
  if (code === 'MULTIPLE_DOCS') return 'holds more than one document; one policy stands in one file';
  if (code === 'TAG_RESOLVE_FAILED') return 'has a tag; a policy needs none';
  return 'is not YAML';
}
