/** Numbers for the texts of log entries, so that an entry takes a few bytes and a filter tests each text once. */
import { globMatches } from '../core/glob.ts';
import type { EntryKind } from '../store/log-columns.ts';
import type { AuditFilter } from '../store/queries.ts';

/** Distinct kinds: about 20 for each agent that calls. */
const MAX_KINDS = 200_000;
/** Distinct resources. */
const MAX_RESOURCES = 100_000;
/** The number of a resource that is not in memory, because there are too many. */
export const OTHER_RESOURCE = 0;

export class LogDictionary {
  /** By number; the first is that of entries that do not exist. */
  readonly #kinds: (EntryKind | null)[] = [null];
  readonly #kindNumbers = new Map<string, number>();
  readonly #resources: string[] = [''];
  readonly #resourceNumbers = new Map<string, number>();

  get isFull(): boolean {
    return this.#kinds.length > MAX_KINDS;
  }

  /** Null for the number of entries that do not exist. */
  kind(number: number): EntryKind | null {
    return this.#kinds[number] ?? null;
  }

  /** The kinds of all entries that were read. */
  kinds(): readonly EntryKind[] {
    return this.#kinds.filter((kind) => kind !== null);
  }

  numberOfKind(kind: EntryKind): number {
    const { eventType, action, agentName, result } = kind;
    // The lengths tell apart texts that were altered.
    const lengths = `${eventType.length} ${action.length} ${agentName.length}`;
    const key = `${lengths} ${eventType}${action}${agentName}${result}`;
    const known = this.#kindNumbers.get(key);
    if (known !== undefined) return known;
    const number = this.#kinds.push(kind) - 1;
    this.#kindNumbers.set(key, number);
    return number;
  }

  numberOfResource(resource: string): number {
    const known = this.#resourceNumbers.get(resource);
    if (known !== undefined) return known;
    if (this.#resources.length > MAX_RESOURCES) return OTHER_RESOURCE;
    const number = this.#resources.push(resource) - 1;
    this.#resourceNumbers.set(resource, number);
    return number;
  }

  select(filter: AuditFilter): Selection {
    const kinds = Uint8Array.from(this.#kinds, (kind) => Number(kind !== null && isSelected(kind, filter)));
    return new Selection(kinds, filter.resource, this.#resources);
  }
}

/** What a filter selects. */
export class Selection {
  /** By number: 1 or 0. */
  readonly kinds: Uint8Array;
  /** The glob; null selects every resource. */
  readonly glob: string | null;
  readonly #resources: readonly string[];
  readonly #matching: (boolean | undefined)[] = [];

  constructor(kinds: Uint8Array, glob: string | null, resources: readonly string[]) {
    this.kinds = kinds;
    this.glob = glob;
    this.#resources = resources;
  }

  /** Whether the resource was tested. */
  isTested(number: number): boolean {
    return this.#matching[number] !== undefined;
  }

  /** A malicious glob takes half a millisecond. */
  test(number: number): void {
    this.#matching[number] = this.glob === null || globMatches(this.glob, this.#resources[number] ?? '');
  }

  /** Of a resource that was tested. */
  hasResource(number: number): boolean {
    return this.#matching[number] === true;
  }
}

function isSelected(kind: EntryKind, { agentName, action, eventType, result }: AuditFilter): boolean {
  return (
    (agentName === null || kind.agentName === agentName) &&
    (action === null || kind.action === action) &&
    (eventType === null || kind.eventType === eventType) &&
    (result === null || kind.result === result)
  );
}
