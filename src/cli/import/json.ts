/**
 * A strict JSON parser that keeps the line and the text of every value. It rejects duplicate keys, and its errors name
 * the line but never the content. SOURCE: RFC 8259. WHY not JSON.parse: it takes the last of two keys, rounds numbers,
 * and quotes the text in errors.
 */
import { UsageError } from '../../platform/errors.ts';

/** The line where a value begins, from 1, and its text as written. */
interface Located {
  readonly line: number;
  readonly text: string;
}
export type JsonObject = Located & { readonly kind: 'object'; readonly members: ReadonlyMap<string, JsonValue> };
export type JsonValue =
  | JsonObject
  | (Located & { readonly kind: 'array'; readonly items: readonly JsonValue[] })
  | (Located & { readonly kind: 'string'; readonly value: string })
  | (Located & { readonly kind: 'number' | 'boolean' | 'null' });

const MAX_DEPTH = 64;
const SPACE = /[ \t\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

/** `name` is the name of the file, for errors. @throws UsageError with the line and the rule */
export function parseJson(text: string, name: string): JsonValue {
  const parser = new Parser(text, name);
  return parser.parse();
}

class Parser {
  readonly #text: string;
  readonly #name: string;
  #at = 0;
  #line = 1;

  constructor(text: string, name: string) {
    this.#text = text;
    this.#name = name;
  }

  parse(): JsonValue {
    const value = this.#value(0);
    this.#space();
    if (this.#at < this.#text.length) this.#fail('nothing may follow the value');
    return value;
  }

  #value(depth: number): JsonValue {
    if (depth > MAX_DEPTH) this.#fail(`it is more than ${MAX_DEPTH} levels deep`);
    this.#space();
    const { line } = this;
    const start = this.#at;
    const located = (): Located => ({ line, text: this.#text.slice(start, this.#at) });
    switch (this.#text[start]) {
      case '{': {
        const members = this.#members(depth);
        return { kind: 'object', members, ...located() };
      }
      case '[': {
        const items = this.#items(depth);
        return { kind: 'array', items, ...located() };
      }
      case '"': {
        const value = this.#string();
        return { kind: 'string', value, ...located() };
      }
      default: {
        const word = this.#take(WORD) ?? this.#take(NUMBER);
        if (word === null) this.#fail('a value was expected');
        const kind = word === 'null' ? 'null' : word === 'true' || word === 'false' ? 'boolean' : 'number';
        return { kind, ...located() };
      }
    }
  }

  get line(): number {
    return this.#line;
  }

  #members(depth: number): ReadonlyMap<string, JsonValue> {
    const members = new Map<string, JsonValue>();
    this.#list('{', '}', () => {
      if (this.#text[this.#at] !== '"') this.#fail('a key in double quotes was expected');
      const key = this.#string();
      if (members.has(key)) this.#fail('an object has the same key twice');
      this.#space();
      this.#expect(':');
      members.set(key, this.#value(depth + 1));
    });
    return members;
  }

  #items(depth: number): readonly JsonValue[] {
    const items: JsonValue[] = [];
    this.#list('[', ']', () => items.push(this.#value(depth + 1)));
    return items;
  }

  #list(open: string, close: string, takeOne: () => void): void {
    this.#expect(open);
    this.#space();
    if (this.#text[this.#at] === close) {
      this.#at += 1;
      return;
    }
    for (;;) {
      this.#space();
      takeOne();
      this.#space();
      if (this.#text[this.#at] === close) {
        this.#at += 1;
        return;
      }
      this.#expect(',');
    }
  }

  #string(): string {
    const start = this.#at;
    let end = start + 1;
    for (; this.#text[end] !== '"'; end += this.#text[end] === '\\' ? 2 : 1) {
      if (end >= this.#text.length) this.#fail('a string is not closed');
      if (this.#text.charCodeAt(end) < 0x20) this.#fail('a string contains an unescaped control character');
    }
    this.#at = end + 1;
    try {
      return JSON.parse(this.#text.slice(start, end + 1)) as string;
    } catch {
      return this.#fail('a string contains an invalid escape');
    }
  }

  #space(): void {
    for (;;) {
      this.#take(SPACE);
      if (this.#text[this.#at] !== '\n') return;
      this.#at += 1;
      this.#line += 1;
    }
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0] ?? null;
    this.#at += match?.length ?? 0;
    return match;
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) this.#fail(`${character} was expected`);
    this.#at += 1;
  }

  #fail(rule: string): never {
    throw new UsageError(`${this.#name}:${this.#line}: is not strict JSON: ${rule}`);
  }
}

/** A member that is a string; null otherwise. */
export function textOf(object: JsonObject, name: string): string | null {
  const member = object.members.get(name);
  return member?.kind === 'string' ? member.value : null;
}

/** A member that is an object; null otherwise. */
export function objectOf(object: JsonObject, name: string): JsonObject | null {
  const member = object.members.get(name);
  return member?.kind === 'object' ? member : null;
}

/** The objects in a member that is an array; empty otherwise. */
export function objectsOf(object: JsonObject, name: string): readonly JsonObject[] {
  const member = object.members.get(name);
  return member?.kind === 'array' ? member.items.filter((item) => item.kind === 'object') : [];
}
