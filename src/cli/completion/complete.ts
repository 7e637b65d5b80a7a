/**
 * `leasehold __complete -- WORD …`, which the shells ask: a line that says what kind of thing stands here, then a line each that could,
 * with a tab and what it is for. It never says what went wrong, and ends within a second.
 */
import { Writable } from 'node:stream';
import type { Command } from '../command.ts';
import { connect } from '../connect.ts';
import { resolveSettings } from '../settings/resolve.ts';
import { mayBeAdministrator, type Settings } from '../settings/settings.ts';
import type { Terminal } from '../terminal.ts';
import { namesFrom, ownAgents, pathsFrom } from './names.ts';
import { locateCursor, type Offer, type Position } from './target.ts';

/** How long the service may take to answer, and how long all of it may take. Tests lengthen them. */
export interface CompletionTimeouts {
  readonly serviceMs: number;
  readonly wholeMs: number;
}

const TIMEOUTS: CompletionTimeouts = { serviceMs: 600, wholeMs: 850 };

/** Ends the process where it would take too long. Never rejects. */
export async function answerShell(
  words: readonly string[],
  commands: readonly Command[],
  terminal: Terminal,
  { serviceMs, wholeMs } = TIMEOUTS,
): Promise<void> {
  const startedAt = performance.now();
  const { stdout } = terminal;
  const [first, ...others] = words;
  const stands = locateCursor(first === '--' ? others : words, commands);
  const { kind } = stands.wish;
  if (kind === 'file' || kind === 'directory' || kind === 'command') {
    stdout.write(`${kind}\n`);
    return;
  }
  setTimeout(() => process.exit(), wholeMs - (performance.now() - startedAt)).unref();
  const found = await look(stands, terminal, serviceMs);
  stdout.write(['words', ...found.offers.map(toLine), ''].join('\n'));
  await found.close();
}

function toLine({ word, does }: Offer): string {
  return does === null ? word : `${word}\t${does}`;
}

interface Found {
  readonly offers: readonly Offer[];
  close(): Promise<void>;
}

const NONE: Found = { offers: [], close: () => Promise.resolve() };

async function look({ wish, flags }: Position, terminal: Terminal, serviceMs: number): Promise<Found> {
  if (wish.kind === 'words') return { ...NONE, offers: wish.offers };
  if (wish.kind !== 'names') return NONE;
  const { noun, before, begun } = wish;
  const toOffers = (names: readonly string[]): Offer[] =>
    names.filter((name) => name.startsWith(begun)).map((name) => ({ word: before + name, does: null }));
  try {
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
    const settings = await resolveSettings((name) => flags.get(name) ?? null, { ...terminal, stderr: silent });
    if (noun === 'own agent') return { ...NONE, offers: toOffers(ownAgents(settings, terminal)) };
    if (!mayAsk(settings, noun)) return NONE;
    const { vault, close } = connect(settings);
    const names = await namesFrom(vault, noun, AbortSignal.timeout(serviceMs));
    return { offers: toOffers(noun === 'path' ? pathsFrom(names, begun) : names.sort()), close };
  } catch {
    return NONE;
  }
}

/** An agent that asks for agents or policies is refused, and the log has it: a key that was pressed must not look like an attack. */
function mayAsk({ identity }: Settings, noun: string): boolean {
  const { value } = identity;
  if (noun === 'path') return value.kind !== 'nobody';
  return mayBeAdministrator(value);
}
