/** Which log entries in memory a filter selects. Each kind and each resource is tested when an entry first has it. */
import { globMatches } from '../core/glob.ts';
import type { EntryKind } from '../store/log-columns.ts';
import type { AuditFilter } from '../store/queries.ts';
import { ID_PREFIXES, type LogBlock, parseId, prefixOf } from './log-block.ts';
import type { LogDictionary } from './log-dictionary.ts';

const [UNTESTED, NO, YES] = [0, 1, 2];

export class Selection {
  /** The glob; null selects every resource. */
  readonly glob: string | null;
  readonly #filter: AuditFilter;
  readonly #dictionary: LogDictionary;
  /** By number. A number that is given later is not one of the visited range. */
  readonly #kinds: Uint8Array;
  readonly #resources: Uint8Array;
  /** By number of the prefix. */
  readonly #ids: readonly IdTest[];
  /** Globs that were matched. A malicious one takes half a millisecond. */
  matchedGlobs = 0;

  constructor(filter: AuditFilter, dictionary: LogDictionary) {
    this.glob = filter.resource;
    this.#filter = filter;
    this.#dictionary = dictionary;
    this.#kinds = new Uint8Array(dictionary.numbersOfKinds);
    this.#resources = new Uint8Array(this.glob === null ? 0 : dictionary.numbersOfResources);
    this.#ids = ID_PREFIXES.map((_, prefix) => testIds(this.glob ?? '*', prefix));
  }

  hasKind(number: number): boolean {
    const known = this.#kinds[number] ?? NO;
    if (known !== UNTESTED) return known === YES;
    const kind = this.#dictionary.kind(number);
    const isSelected = kind !== null && matches(kind, this.#filter);
    this.#kinds[number] = isSelected ? YES : NO;
    return isSelected;
  }

  /** Whether the glob matches a resource of the block. */
  hasResource(block: LogBlock, number: number): boolean {
    if (this.glob === null) return true;
    const prefix = prefixOf(number);
    if (prefix !== null) return this.#hasId(this.#ids[prefix] ?? 'none', this.glob, block, number);
    const known = this.#resources[number] ?? NO;
    if (known !== UNTESTED) return known === YES;
    const isSelected = this.#match(this.glob, this.#dictionary.resource(number) ?? '');
    this.#resources[number] = isSelected ? YES : NO;
    return isSelected;
  }

  #hasId(test: IdTest, glob: string, block: LogBlock, number: number): boolean {
    if (test === 'none' || test === 'all') return test === 'all';
    return test === 'some' ? this.#match(glob, block.textOf(number)) : block.hasId(number, test);
  }

  #match(glob: string, text: string): boolean {
    this.matchedGlobs += 1;
    return globMatches(glob, text);
  }
}

/** The resources with a prefix that a glob matches; a Buffer is the only id. WHY: to match each takes long. */
type IdTest = 'all' | 'none' | 'some' | Buffer;

function testIds(glob: string, prefix: number): IdTest {
  const [literal = '', pattern = ''] = /^([^*?]*)(.*)$/s.exec(glob)?.slice(1) ?? [];
  if (pattern === '') {
    const only = parseId(glob);
    return only?.prefix === prefix ? only.id : 'none';
  }
  const beginning = ID_PREFIXES[prefix] ?? '';
  if (beginning.startsWith(literal)) return /^\*+$/.test(pattern) ? 'all' : 'some';
  return literal.startsWith(beginning) ? 'some' : 'none';
}

function matches(kind: EntryKind, { agentName, action, eventType, result }: AuditFilter): boolean {
  return (
    (agentName === null || kind.agentName === agentName) &&
    (action === null || kind.action === action) &&
    (eventType === null || kind.eventType === eventType) &&
    (result === null || kind.result === result)
  );
}
