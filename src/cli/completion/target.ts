/** Determines from the command table what can be completed at the cursor. */
import type { Argument, Command, Completes, Flag, Flags } from '../command.ts';
import { CONNECTION_FLAGS, flagsOf, OUTPUT_FLAGS } from '../flags.ts';

export interface Offer {
  readonly word: string;
  /** Null for a name that explains itself. */
  readonly description: string | null;
}

/** Names looked up on this machine or in the service. */
export type NameKind = 'path' | 'agent' | 'own agent' | 'policy';

type Target =
  | { readonly kind: 'words'; readonly offers: readonly Offer[] }
  /** `before` precedes the name in the same word, as in `--path=`. */
  | { readonly kind: 'names'; readonly noun: NameKind; readonly before: string; readonly begun: string }
  | { readonly kind: 'file' | 'directory' | 'command' };

export interface Position {
  readonly target: Target;
  /** The flags typed so far, which select the service and the identity. */
  readonly flags: ReadonlyMap<string, string>;
}

const NOTHING: Target = { kind: 'words', offers: [] };
const COMMON: Flags = { ...OUTPUT_FLAGS, ...CONNECTION_FLAGS };
const FIRST_FLAGS: readonly Offer[] = [
  { word: '--help', description: 'show all commands' },
  { word: '--version', description: 'show the version' },
];

/** `words` follow the program's name; the last one is being typed and may be empty. */
export function locateCursor(words: readonly string[], commands: readonly Command[]): Position {
  const reader = new Reader(commands);
  for (const word of words.slice(0, -1)) reader.read(word);
  return { target: reader.target(words.at(-1) ?? ''), flags: reader.flags };
}

interface NamedFlag {
  readonly name: string;
  readonly flag: Flag;
}

class Reader {
  readonly #commands: readonly Command[];
  readonly flags = new Map<string, string>();
  /** A noun whose verb has not been read yet. */
  #noun: string | null = null;
  #command: Command | null = null;
  #arguments = 0;
  /** The flag whose value comes next. */
  #flag: NamedFlag | null = null;
  /** Number of words after `--`; null before it. */
  #rest: number | null = null;

  constructor(commands: readonly Command[]) {
    this.#commands = commands;
  }

  read(word: string): void {
    if (this.#rest !== null) this.#rest += 1;
    else if (this.#flag !== null) {
      this.flags.set(this.#flag.name, word);
      this.#flag = null;
    } else if (word === '--') this.#rest = 0;
    else if (word.startsWith('-') && word !== '-') this.#readFlag(word);
    else if (this.#command !== null) this.#arguments += 1;
    else if (word !== 'help' || this.#noun !== null) this.#readName(word);
  }

  #readFlag(word: string): void {
    const [name = '', ...value] = word.split('=');
    const found = this.#known.find((known) => name === `--${known.name}` || name === `-${known.flag.short}`);
    if (found === undefined) return;
    if (value.length > 0 || found.flag.value === null) this.flags.set(found.name, value.join('=') || 'true');
    else this.#flag = found;
  }

  #readName(word: string): void {
    const full = this.#noun === null ? word : `${this.#noun} ${word}`;
    const command = this.#commands.find(({ name }) => name === full);
    if (command !== undefined) this.#command = command;
    else this.#noun = full;
  }

  get #known(): NamedFlag[] {
    const flags = this.#command === null ? COMMON : flagsOf(this.#command);
    return Object.entries(flags).map(([name, flag]) => ({ name, flag }));
  }

  target(begun: string): Target {
    const command = this.#command;
    if (this.#rest !== null)
      return this.#rest === 0 && command?.rest !== undefined ? { kind: 'command' } : { kind: 'file' };
    if (this.#flag !== null) return toTarget(valuesOf(this.#flag.flag), '', begun);
    if (command?.takesAllWords === true) return { kind: 'file' };
    const [, name, value] = /^--([\w-]+)=(.*)$/s.exec(begun) ?? [];
    if (name !== undefined && value !== undefined) {
      const found = this.#known.find((known) => known.name === name);
      return found === undefined ? NOTHING : toTarget(valuesOf(found.flag), `--${name}=`, value);
    }
    if (begun.startsWith('-')) return words(this.#flagOffers(), begun);
    if (command === null) return words(this.#nameOffers(), begun);
    return toTarget(argumentAt(command, this.#arguments)?.completes, '', begun);
  }

  #flagOffers(): Offer[] {
    const left = this.#known.filter(({ name, flag }) => flag.isRepeatable === true || !this.flags.has(name));
    const offers = left.map(({ name, flag }) => ({ word: `--${name}`, description: flag.help }));
    return this.#command === null && this.#noun === null ? [...FIRST_FLAGS, ...offers] : offers;
  }

  #nameOffers(): Offer[] {
    const before = this.#noun === null ? '' : `${this.#noun} `;
    const offers = new Map<string, Offer>();
    for (const { name, summary } of this.#commands) {
      if (!name.startsWith(before)) continue;
      const [word = '', ...verb] = name.slice(before.length).split(' ');
      if (!offers.has(word)) offers.set(word, { word, description: verb.length === 0 ? summary : null });
    }
    return [...offers.values()];
  }
}

function argumentAt({ arguments: wanted = [] }: Command, at: number): Argument | undefined {
  const last = wanted.at(-1);
  return wanted[at] ?? (last?.count === 'many' ? last : undefined);
}

function valuesOf({ completes, value }: Flag): Completes | undefined {
  const choices = value?.split('|') ?? [];
  return completes ?? (choices.length > 1 ? choices : undefined);
}

function toTarget(completes: Completes | undefined, before: string, begun: string): Target {
  switch (completes) {
    case undefined:
      return NOTHING;
    case 'file':
    case 'directory':
    case 'command':
      return { kind: completes };
    case 'path':
    case 'agent':
    case 'own agent':
    case 'policy':
      return { kind: 'names', noun: completes, before, begun };
    case 'assignment': {
      const [name = '', ...path] = begun.split('=');
      return path.length === 0
        ? NOTHING
        : { kind: 'names', noun: 'path', before: `${before}${name}=`, begun: path.join('=') };
    }
    default:
      return words(
        completes.map((word) => ({ word: before + word, description: null })),
        before + begun,
      );
  }
}

function words(offers: readonly Offer[], begun: string): Target {
  return { kind: 'words', offers: offers.filter(({ word }) => word.startsWith(begun)) };
}
