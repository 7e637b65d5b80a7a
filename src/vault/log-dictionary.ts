/** Numbers for the texts of log entries, so that an entry takes a few bytes and a filter tests each text once. */
import type { EntryKind } from '../store/log-columns.ts';

/** Distinct kinds: about 20 for each agent that calls. */
const MAX_KINDS = 200_000;
/** WHY lower: entries are read again where others were dropped because there were too many kinds. */
const MAX_KINDS_OF_OLDER = MAX_KINDS - 20_000;
/** Distinct resources without an id. */
const MAX_RESOURCES = 100_000;
/** Of all kinds, and of all resources. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** The number of a resource that is not in memory, because there are too many. */
export const OTHER_RESOURCE = 0;

/**
 * Numbers values from 1 on. A value that no entry has any more is forgotten, and its number given again.
 * INVARIANT: a number means the same until `reuse` is called.
 */
class Numbering<T> {
  readonly #keyOf: (value: T) => string;
  readonly #numbers = new Map<string, number>();
  readonly #values: (T | null)[] = [null];
  /** How many entries have the value. */
  readonly #uses: number[] = [0];
  #released: number[] = [];
  #free: number[] = [];
  #characters = 0;

  constructor(keyOf: (value: T) => string) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#numbers.size;
  }

  /** Above every number. */
  get end(): number {
    return this.#values.length;
  }

  get characters(): number {
    return this.#characters;
  }

  /** Null for a number that means nothing. */
  value(number: number): T | null {
    return this.#values[number] ?? null;
  }

  values(): readonly T[] {
    return [...this.#numbers.values()].map((number) => this.value(number)).filter((value) => value !== null);
  }

  /** Counts a use. Returns 0 for a new value if none may be added. */
  take(value: T, mayAdd: boolean): number {
    const key = this.#keyOf(value);
    let number = this.#numbers.get(key);
    if (number === undefined) {
      if (!mayAdd) return 0;
      number = this.#free.pop() ?? this.#values.length;
      this.#values[number] = value;
      this.#uses[number] = 0;
      this.#numbers.set(key, number);
      this.#characters += key.length;
    }
    this.#uses[number] = (this.#uses[number] ?? 0) + 1;
    return number;
  }

  release(number: number): void {
    const uses = (this.#uses[number] ?? 0) - 1;
    this.#uses[number] = uses;
    const value = this.value(number);
    if (uses > 0 || value === null) return;
    const key = this.#keyOf(value);
    this.#numbers.delete(key);
    this.#characters -= key.length;
    this.#released.push(number);
  }

  /** Gives the numbers of forgotten values again. */
  reuse(): void {
    for (const number of this.#released) {
      this.#values[number] = null;
      this.#free.push(number);
    }
    this.#released = [];
  }
}

export class LogDictionary {
  readonly #kinds = new Numbering<EntryKind>(({ eventType, action, agentName, result }) => {
    // The lengths tell apart texts that were altered.
    const lengths = `${eventType.length} ${action.length} ${agentName.length}`;
    return `${lengths} ${eventType}${action}${agentName}${result}`;
  });
  readonly #resources = new Numbering<string>((resource) => resource);

  /** Whether entries must be dropped before newer ones are read. */
  get isFull(): boolean {
    return this.#kinds.size > MAX_KINDS || this.#kinds.characters > MAX_CHARACTERS;
  }

  /** Whether older entries may be read. */
  get hasRoom(): boolean {
    return this.#kinds.size < MAX_KINDS_OF_OLDER && this.#kinds.characters < MAX_CHARACTERS * 0.9;
  }

  /** Above every number of a kind. */
  get numbersOfKinds(): number {
    return this.#kinds.end;
  }

  get numbersOfResources(): number {
    return this.#resources.end;
  }

  /** Null for the number of entries that do not exist. */
  kind(number: number): EntryKind | null {
    return this.#kinds.value(number);
  }

  /** The kinds of all entries in memory. */
  kinds(): readonly EntryKind[] {
    return this.#kinds.values();
  }

  /** Null for a number that is not one of a resource. */
  resource(number: number): string | null {
    return this.#resources.value(number);
  }

  takeKind(kind: EntryKind): number {
    return this.#kinds.take(kind, true);
  }

  /** `OTHER_RESOURCE` if there are too many. */
  takeResource(resource: string): number {
    const { size, characters } = this.#resources;
    return this.#resources.take(resource, size < MAX_RESOURCES && characters < MAX_CHARACTERS);
  }

  releaseKind(number: number): void {
    this.#kinds.release(number);
  }

  releaseResource(number: number): void {
    this.#resources.release(number);
  }

  /** To be called when no caller has a number. */
  reuseNumbers(): void {
    this.#kinds.reuse();
    this.#resources.reuse();
  }
}
