/**
 * JSON as it stands in a file: strict, no key twice in an object, a number as it was written, and the line of every value. Errors say
 * where, never what. SOURCE: RFC 8259. WHY not JSON.parse: it takes the last of two keys, rounds numbers, and quotes what it refuses.
 */
import { UsageError } from '../../platform/errors.ts';

/** Of every value: the line where it begins, from 1, and its text as it was written. */
interface Placed {
  readonly line: number;
  readonly text: string;
}
export type JsonObject = Placed & { readonly kind: 'object'; readonly members: ReadonlyMap<string, JsonValue> };
export type JsonValue =
  | JsonObject
  | (Placed & { readonly kind: 'array'; readonly items: readonly JsonValue[] })
  | (Placed & { readonly kind: 'string'; readonly value: string })
  | (Placed & { readonly kind: 'number' | 'boolean' | 'null' });

const DEEPEST = 64;
const SPACE = /[ \t\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

/** `name` is that of the file, for the error. @throws UsageError with the line and the rule */
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
    if (this.#at < this.#text.length) this.#refuse('nothing may follow the value');
    return value;
  }

  #value(depth: number): JsonValue {
    if (depth > DEEPEST) this.#refuse(`more than ${DEEPEST} levels deep`);
    this.#space();
    const { line } = this;
    const start = this.#at;
    const placed = (): Placed => ({ line, text: this.#text.slice(start, this.#at) });
    switch (this.#text[start]) {
      case '{': {
        const members = this.#members(depth);
        return { kind: 'object', members, ...placed() };
      }
      case '[': {
        const items = this.#items(depth);
        return { kind: 'array', items, ...placed() };
      }
      case '"': {
        const value = this.#string();
        return { kind: 'string', value, ...placed() };
      }
      default: {
        const word = this.#take(WORD) ?? this.#take(NUMBER);
        if (word === null) this.#refuse('a value was expected');
        const kind = word === 'null' ? 'null' : word === 'true' || word === 'false' ? 'boolean' : 'number';
        return { kind, ...placed() };
      }
    }
  }

  get line(): number {
    return this.#line;
  }

  #members(depth: number): ReadonlyMap<string, JsonValue> {
    const members = new Map<string, JsonValue>();
    this.#list('{', '}', () => {
      if (this.#text[this.#at] !== '"') this.#refuse('a key in double quotes was expected');
      const key = this.#string();
      if (members.has(key)) this.#refuse('an object has the same key twice; which of the two is meant cannot be told');
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
      if (end >= this.#text.length) this.#refuse('a string has no end');
      if (this.#text.charCodeAt(end) < 0x20) this.#refuse('a string has a control character that is not escaped');
    }
    this.#at = end + 1;
    try {
      return JSON.parse(this.#text.slice(start, end + 1)) as string;
    } catch {
      return this.#refuse('a string has an escape that does not exist');
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
    const taken = pattern.exec(this.#text)?.[0] ?? null;
    this.#at += taken?.length ?? 0;
    return taken;
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) this.#refuse(`${character} was expected`);
    this.#at += 1;
  }

  #refuse(rule: string): never {
    throw new UsageError(`${this.#name}:${this.#line}: this is no strict JSON: ${rule}`);
  }
}

/** The text of a member, where it is a text; null for anything else. */
export function textOf(object: JsonObject, name: string): string | null {
  const member = object.members.get(name);
  return member?.kind === 'string' ? member.value : null;
}

export function objectOf(object: JsonObject, name: string): JsonObject | null {
  const member = object.members.get(name);
  return member?.kind === 'object' ? member : null;
}

/** The objects of an array; none where it is no array. */
export function objectsOf(object: JsonObject, name: string): readonly JsonObject[] {
  const member = object.members.get(name);
  return member?.kind === 'array' ? member.items.filter((item) => item.kind === 'object') : [];
}
