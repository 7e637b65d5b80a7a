/**
 * `leasehold __complete -- WORD …`, called by the shell scripts. Prints the kind of completion, then a line for each
 * candidate with a tab and its description. Prints no errors and ends within a second.
 */
import { Writable } from 'node:stream';
import type { Command } from '../command.ts';
import { connect } from '../connect.ts';
import { resolveSettings } from '../settings/resolve.ts';
import { mayBeAdministrator, type Settings } from '../settings/settings.ts';
import type { Terminal } from '../terminal.ts';
import { namesFrom, ownAgents, pathsFrom } from './names.ts';
import { locateCursor, type Offer, type Position } from './target.ts';

/** Limits for the service and for the whole completion. Tests increase them. */
export interface CompletionTimeouts {
  readonly serviceMs: number;
  readonly wholeMs: number;
}

const TIMEOUTS: CompletionTimeouts = { serviceMs: 600, wholeMs: 850 };

/** Exits the process at the time limit. Never rejects. */
export async function printCompletions(
  words: readonly string[],
  commands: readonly Command[],
  terminal: Terminal,
  { serviceMs, wholeMs } = TIMEOUTS,
): Promise<void> {
  const startedAt = performance.now();
  const { stdout } = terminal;
  const [first, ...others] = words;
  const position = locateCursor(first === '--' ? others : words, commands);
  const { kind } = position.target;
  if (kind === 'file' || kind === 'directory' || kind === 'command') {
    stdout.write(`${kind}\n`);
    return;
  }
  setTimeout(() => process.exit(), wholeMs - (performance.now() - startedAt)).unref();
  const found = await findOffers(position, terminal, serviceMs);
  stdout.write(['words', ...found.offers.map(toLine), ''].join('\n'));
  await found.close();
}

function toLine({ word, description }: Offer): string {
  return description === null ? word : `${word}\t${description}`;
}

interface Found {
  readonly offers: readonly Offer[];
  close(): Promise<void>;
}

const NONE: Found = { offers: [], close: () => Promise.resolve() };

async function findOffers({ target, flags }: Position, terminal: Terminal, serviceMs: number): Promise<Found> {
  if (target.kind === 'words') return { ...NONE, offers: target.offers };
  if (target.kind !== 'names') return NONE;
  const { noun, before, begun } = target;
  const toOffers = (names: readonly string[]): Offer[] =>
    names.filter((name) => name.startsWith(begun)).map((name) => ({ word: before + name, description: null }));
  try {
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
    const settings = await resolveSettings((name) => flags.get(name) ?? null, { ...terminal, stderr: silent });
    if (noun === 'own agent') return { ...NONE, offers: toOffers(ownAgents(settings, terminal)) };
    if (!mayList(settings, noun)) return NONE;
    const { vault, close } = connect(settings);
    const names = await namesFrom(vault, noun, AbortSignal.timeout(serviceMs));
    return { offers: toOffers(noun === 'path' ? pathsFrom(names, begun) : names.sort()), close };
  } catch {
    return NONE;
  }
}

/** Agents may not list agents or policies. A key press must not add denials to the audit log. */
function mayList({ identity }: Settings, noun: string): boolean {
  const { value } = identity;
  if (noun === 'path') return value.kind !== 'anonymous';
  return mayBeAdministrator(value);
}
