// Reads the project's source for the convention tests: separates code from literals and comments, and lists imports.
// It is a tokenizer and not a parser, which is enough to distinguish code from comments and strings.

import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(import.meta.dirname, '../..');

export interface Source {
  /** The path from the top of the project, with forward slashes. */
  readonly name: string;
  readonly text: string;
  /** The text without comments, each literal replaced by its quoted index in `literals`. Line numbers do not change. */
  readonly code: string;
  readonly literals: readonly string[];
}

interface Import {
  /** Undefined if it is computed at run time. */
  readonly specifier: string | undefined;
  readonly isTypeOnly: boolean;
}

/**
 * The files below the directories whose names end with one of `endings`, sorted by name. A missing directory has none.
 */
export function readSources(places: readonly string[], endings: readonly string[] = ['.ts', '.mjs']): Source[] {
  const names = places.flatMap((place) => globSync([place, `${place}/**/*`], { cwd: ROOT }));
  return names
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => endings.some((ending) => name.endsWith(ending)))
    .sort()
    .map((name) => readSource(name));
}

const read = new Map<string, Source>();

/** WHY kept: several tests of this process read the same files, and separating their code takes seconds. */
function readSource(name: string): Source {
  const known = read.get(name) ?? toSource(name, readFileSync(path.join(ROOT, name), 'utf8'));
  read.set(name, known);
  return known;
}

export function toSource(name: string, text: string): Source {
  let separated: { code: string; literals: string[] } | undefined;
  const parts = () => (separated ??= separate(text));
  return {
    name,
    text,
    get code() {
      return parts().code;
    },
    get literals() {
      return parts().literals;
    },
  };
}

// At the start of an expression a slash begins a regular expression; after a value it divides.
const BEFORE_EXPRESSION =
  /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|void|throw|else|do|await|yield))\s*$/;
const TOKEN = {
  comment: /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y,
  string: /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y,
  regex: /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y,
  template: /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{|$)/y,
};

/** Whether the slash is that of `</name>` or `<name />`. */
function isTagSlash(text: string, at: number): boolean {
  return text[at - 1] === '<' || text[at + 1] === '>';
}

function separate(text: string): { code: string; literals: string[] } {
  const literals: string[] = [];
  const bracesOfTemplates: number[] = []; // for each template being inside of: how many braces stand open in its ${…}
  let code = '';
  let at = 0;
  const take = (token: RegExp): string | undefined => {
    token.lastIndex = at;
    const found = token.exec(text)?.[0];
    at += found?.length ?? 0;
    return found;
  };
  const addLiteral = (raw: string, content: string): void => {
    code += `'${literals.push(content) - 1}'${raw.replace(/[^\n]/g, '')}`;
  };
  const takeTemplate = (): void => {
    const part = take(TOKEN.template) ?? '';
    addLiteral(part, part.replace(/`$|\$\{$/, ''));
    if (part.endsWith('${')) bracesOfTemplates.push(0);
  };
  while (at < text.length) {
    const comment = take(TOKEN.comment);
    const string = comment === undefined ? take(TOKEN.string) : undefined;
    const last = bracesOfTemplates.length - 1;
    if (comment !== undefined) code += comment.replace(/[^\n]/g, ' ');
    else if (string !== undefined) addLiteral(string, string.slice(1, -1));
    else if (text[at] === '/' && !isTagSlash(text, at) && BEFORE_EXPRESSION.test(code.slice(-80))) {
      const regex = take(TOKEN.regex);
      if (regex === undefined) code += text[at++];
      else addLiteral(regex, regex);
    } else if (text[at] === '`') {
      at += 1;
      takeTemplate();
    } else if (text[at] === '}' && bracesOfTemplates[last] === 0) {
      bracesOfTemplates.pop();
      at += 1;
      takeTemplate();
    } else {
      const open = bracesOfTemplates[last];
      if (open !== undefined && text[at] === '{') bracesOfTemplates[last] = open + 1;
      if (open !== undefined && text[at] === '}') bracesOfTemplates[last] = open - 1;
      code += text[at++];
    }
  }
  return { code, literals };
}

const FROM = /\b(?:import|export)\s+(type\s+)?[\w$*\s{},]*?\bfrom\s*'(\d+)'/g;
const SIDE_EFFECT = /\bimport\s*()'(\d+)'/g;
const CALL = /\b(?:import|require|createRequire|getBuiltinModule)\s*\(()\s*(?:'(\d+)'\s*[,)])?/g;

/** Imports: static, re-exported, side-effect only, dynamic, in a type, or in an older syntax. */
export function importsOf({ code, literals }: Source): Import[] {
  return [FROM, SIDE_EFFECT, CALL].flatMap((statement) =>
    [...code.matchAll(statement)].map(([, type, index]) => ({
      specifier: index === undefined ? undefined : literals[Number(index)],
      isTypeOnly: Boolean(type),
    })),
  );
}

/** The file that a relative import of this one names. */
export function resolveImport(source: Source, specifier: string): string {
  return path.posix.join(path.posix.dirname(source.name), specifier);
}
