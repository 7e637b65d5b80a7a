/** Determines from the command table what can be completed at the cursor. */
import { parseArgs } from 'node:util';
import type { Argument, Command, Completes, Flag } from '../command.ts';
import { CONNECTION_FLAGS, flagsOf, OUTPUT_FLAGS } from '../flags.ts';

export interface Offer {
  readonly word: string;
  /** Null for a name that explains itself. */
  readonly description: string | null;
}

/** Names looked up on this machine or in the service. */
export type NameKind = 'path' | 'agent' | 'own agent' | 'operator' | 'policy' | 'approval';

type Target =
  | { readonly kind: 'words'; readonly offers: readonly Offer[] }
  /** `before` precedes the name in the same word, as in `--path=`. */
  | {
      readonly kind: 'names';
      readonly noun: NameKind;
      readonly before: string;
      readonly begun: string;
      readonly verbs?: readonly Offer[];
    }
  | { readonly kind: 'file' | 'directory' | 'command' };

export interface Position {
  readonly target: Target;
  /** The flags typed so far, which select the service and the identity. */
  readonly flags: ReadonlyMap<string, string>;
}

const NOTHING: Target = { kind: 'words', offers: [] };
const COMMON = new Map<string, Flag>(Object.entries({ ...OUTPUT_FLAGS, ...CONNECTION_FLAGS }));
const FIRST_FLAGS: readonly Offer[] = [
  { word: '--help', description: 'show all commands' },
  { word: '--version', description: 'show the version' },
];

/** `words` follow the program's name; the last one is being typed and may be empty. */
export function locateCursor(words: readonly string[], commands: readonly Command[]): Position {
  const [typed, begun] = [words.slice(0, -1), words.at(-1) ?? ''];
  const named = operandsOf(tokensOf(typed, COMMON));
  const names = named[0] === 'help' ? named.slice(1) : named;
  // The longest name counts: `approve list` is not `approve` with an argument.
  const command = [3, 2, 1]
    .map((count) => commands.find(({ name }) => name === names.slice(0, count).join(' ') && names.length >= count))
    .find((found) => found !== undefined);
  const known = command === undefined ? COMMON : new Map(Object.entries(flagsOf(command)));
  const tokens = tokensOf(typed, known);
  const flags = new Map<string, string>();
  for (const token of tokens) {
    const flag = token.kind === 'option' ? known.get(token.name) : undefined;
    if (token.kind !== 'option' || flag === undefined) continue;
    if (flag.value === null || token.value !== undefined) flags.set(token.name, token.value ?? 'true');
  }
  return { target: findTarget(), flags };

  function findTarget(): Target {
    const end = tokens.findIndex(({ kind }) => kind === 'option-terminator');
    if (end !== -1) return { kind: end === tokens.length - 1 && command?.rest !== undefined ? 'command' : 'file' };
    const last = tokens.at(-1);
    const open = last?.kind === 'option' && last.value === undefined ? known.get(last.name) : undefined;
    if (open !== undefined && open.value !== null) return toTarget(valuesOf(open), '', begun);
    if (command?.takesAllWords === true) return { kind: 'file' };
    const [, name, value] = /^--([\w-]+)=(.*)$/s.exec(begun) ?? [];
    if (name !== undefined && value !== undefined) {
      const flag = known.get(name);
      return flag === undefined ? NOTHING : toTarget(valuesOf(flag), `--${name}=`, value);
    }
    if (begun.startsWith('-')) {
      const left = [...known].filter(([each, flag]) => flag.isRepeatable === true || !flags.has(each));
      const offers = left.map(([each, flag]) => ({ word: `--${each}`, description: flag.help }));
      return toWords(names.length === 0 ? [...FIRST_FLAGS, ...offers] : offers, begun);
    }
    if (command === undefined) return toWords(nameOffers(names, commands), begun);
    const argument = operandsOf(tokens).length - (named.length - names.length) - command.name.split(' ').length;
    const target = toTarget(argumentAt(command, argument)?.completes, '', begun);
    const verbs = argument === 0 ? nameOffers(command.name.split(' '), commands) : [];
    return target.kind === 'names' && verbs.length > 0 ? { ...target, verbs } : target;
  }
}

function tokensOf(args: readonly string[], flags: ReadonlyMap<string, Flag>) {
  const options = [...flags].map(([name, { short, value }]) => {
    const type: 'boolean' | 'string' = value === null ? 'boolean' : 'string';
    return [name, short === undefined ? { type } : { type, short }] as const;
  });
  return parseArgs({ args, options: Object.fromEntries(options), strict: false, tokens: true }).tokens;
}

function operandsOf(tokens: ReturnType<typeof tokensOf>): string[] {
  return tokens.flatMap((token) => (token.kind === 'positional' ? token.value : []));
}

function nameOffers(names: readonly string[], commands: readonly Command[]): Offer[] {
  const before = names.map((name) => `${name} `).join('');
  const offers = new Map<string, Offer>();
  for (const { name, summary } of commands) {
    if (!name.startsWith(before)) continue;
    const [word = '', ...verb] = name.slice(before.length).split(' ');
    if (!offers.has(word)) offers.set(word, { word, description: verb.length === 0 ? summary : null });
  }
  return [...offers.values()];
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
    case 'operator':
    case 'policy':
    case 'approval':
      return { kind: 'names', noun: completes, before, begun };
    case 'assignment':
    case 'path or assignment': {
      const [name = '', ...path] = begun.split('=');
      const alone: Target = completes === 'assignment' ? NOTHING : { kind: 'names', noun: 'path', before, begun };
      return path.length === 0
        ? alone
        : { kind: 'names', noun: 'path', before: `${before}${name}=`, begun: path.join('=') };
    }
    default:
      return toWords(
        completes.map((word) => ({ word: before + word, description: null })),
        before + begun,
      );
  }
}

function toWords(offers: readonly Offer[], begun: string): Target {
  return { kind: 'words', offers: offers.filter(({ word }) => word.startsWith(begun)) };
}
