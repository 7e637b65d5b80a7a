/**
 * Parses the subset of YAML that deploy/compose.yaml uses and rejects everything else, including what parsers read
 * differently: mappings and sequences indented by two spaces, sequences of scalars in brackets, plain and double-quoted
 * scalars, anchors on mappings, and `<<`.
 */

export type Yaml = string | boolean | null | readonly Yaml[] | YamlMap;
export type YamlMap = { readonly [key: string]: Yaml };

interface Line {
  readonly number: number;
  readonly indent: number;
  readonly text: string;
}

/** Scalars that YAML 1.1 does not read as strings: words such as yes and no, numbers in base 60. */
const AMBIGUOUS = /^(?:y|n|yes|no|on|off|null|~)$|^[\d.:_-]*:[\d.:_-]*$/i;
const KEY = /^([A-Za-z0-9_.-]+|<<):(?: (.*))?$/;

/** @throws Error with the line */
export function parseYaml(text: string): Yaml {
  const lines = text.split('\n').flatMap((line, index): Line[] => {
    const content = line.trimStart();
    if (content === '' || content.startsWith('#')) return [];
    if (/\t| $/.test(line)) throw new Error(`line ${index + 1}: a tab, or a blank at the end`);
    return [{ number: index + 1, indent: line.length - content.length, text: content.replace(/ #.*$/, '').trimEnd() }];
  });
  const reader = new Reader(lines);
  const value = reader.block(0);
  reader.assertEnd();
  return value;
}

class Reader {
  readonly #lines: Line[];
  readonly #anchors = new Map<string, YamlMap>();

  constructor(lines: Line[]) {
    this.#lines = lines;
  }

  assertEnd(): void {
    const [line] = this.#lines;
    if (line !== undefined) this.#refuse(line, 'an indentation that nothing opened');
  }

  /** The mapping or sequence at this depth. */
  block(indent: number): Yaml {
    return this.#lines[0]?.text.startsWith('- ') ? this.#sequence(indent) : this.#mapping(indent);
  }

  #sequence(indent: number): Yaml[] {
    const items: Yaml[] = [];
    for (let line = this.#at(indent); line?.text.startsWith('- '); line = this.#at(indent)) {
      const item = line.text.slice(2);
      if (KEY.test(item)) {
        // The item is a mapping whose first key follows the dash.
        this.#lines[0] = { ...line, indent: indent + 2, text: item };
        items.push(this.#mapping(indent + 2));
      } else {
        this.#lines.shift();
        items.push(this.#scalar(line, item));
      }
    }
    return items;
  }

  #mapping(indent: number): YamlMap {
    const own = new Map<string, Yaml>();
    const merged = new Map<string, Yaml>();
    for (let line = this.#at(indent); line !== undefined; line = this.#at(indent)) {
      this.#lines.shift();
      const [, key = '', rest = ''] = KEY.exec(line.text) ?? this.#refuse(line, 'neither a key nor an item');
      if (key === '<<') {
        const anchor = this.#anchors.get(rest.replace(/^\*/, '')) ?? this.#refuse(line, 'no such anchor');
        for (const [name, value] of Object.entries(anchor)) merged.set(name, value);
        continue;
      }
      if (own.has(key)) this.#refuse(line, 'a key twice');
      own.set(key, this.#value(line, indent, rest));
    }
    return Object.fromEntries([...merged, ...own]);
  }

  #value(line: Line, indent: number, rest: string): Yaml {
    const anchor = /^&([a-z]+)$/.exec(rest)?.[1];
    if (rest !== '' && anchor === undefined) return this.#scalar(line, rest);
    const isNested = (this.#lines[0]?.indent ?? 0) > indent;
    const value = isNested ? this.block(indent + 2) : null;
    if (anchor !== undefined) {
      if (value === null || typeof value !== 'object' || Array.isArray(value))
        this.#refuse(line, 'an anchor on no mapping');
      this.#anchors.set(anchor, value as YamlMap);
    }
    return value;
  }

  #scalar(line: Line, text: string): Yaml {
    if (/^\[[^[\]]*\]$/.test(text))
      return text
        .slice(1, -1)
        .split(', ')
        .map((item) => this.#scalar(line, item));
    const quoted = /^"([^"\\]*)"$/.exec(text)?.[1];
    if (quoted !== undefined) return quoted;
    if (text === 'true' || text === 'false') return text === 'true';
    if (AMBIGUOUS.test(text)) this.#refuse(line, 'to be quoted: others read it as a number or as yes or no');
    if (/^[[\]{}&*!|>'"%@`,?#]|^-(?![-a-z])|: |[[\]{},"]|:$/.test(text)) this.#refuse(line, 'more than a plain scalar');
    return text;
  }

  /** The next line, if it has this depth; a deeper one is an error. */
  #at(indent: number): Line | undefined {
    const [line] = this.#lines;
    if (line !== undefined && line.indent > indent) this.#refuse(line, 'indented too far');
    return line?.indent === indent ? line : undefined;
  }

  #refuse(line: Line, why: string): never {
    throw new Error(`line ${line.number}: ${why}: ${line.text}`);
  }
}
