/**
 * `leasehold __complete -- WORD …`, called by the shell scripts. Prints the kind of completion, then a line for each
 * candidate with a tab and its description. Prints no errors and ends within a second.
 */
import { Writable } from 'node:stream';
import type { Command, Invocation } from '../command.ts';
import { createInvocation } from '../invocation.ts';
import { resolveSettings } from '../settings/resolve.ts';
import { mayBeAdministrator } from '../settings/settings.ts';
import type { Terminal } from '../terminal.ts';
import { namesFrom, ownAgents, pathsFrom } from './names.ts';
import { locateCursor, type NameKind, type Offer } from './target.ts';

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
  const { stdout } = terminal;
  const { target, flags } = locateCursor(words[0] === '--' ? words.slice(1) : words, commands);
  if (target.kind === 'file' || target.kind === 'directory' || target.kind === 'command') {
    stdout.write(`${target.kind}\n`);
    return;
  }
  setTimeout(() => process.exit(), wholeMs).unref();
  let invocation: Invocation | null = null;
  let offers: readonly Offer[] = [];
  try {
    if (target.kind === 'words') offers = target.offers;
    else if (target.kind === 'names') {
      const silent = { ...terminal, stderr: new Writable({ write: (_chunk, _encoding, done) => done() }) };
      const settings = await resolveSettings((name) => flags.get(name) ?? null, silent);
      const signal = AbortSignal.timeout(serviceMs);
      invocation = createInvocation({ terminal: silent, settings, signal, rest: [], field: null });
      const { noun, before, begun } = target;
      const names = (await findNames(invocation, noun, begun)).filter((name) => name.startsWith(begun));
      offers = names.map((name) => ({ word: before + name, description: null }));
    }
  } catch {
    // Without valid settings or an identity nothing is offered.
  }
  // ORDER: printed first, because the end of the session may take longer than the limit.
  const lines = offers.map(({ word, description }) => (description === null ? word : `${word}\t${description}`));
  stdout.write(['words', ...lines, ''].join('\n'));
  await invocation?.close();
}

async function findNames(invocation: Invocation, noun: NameKind, begun: string): Promise<string[]> {
  const { settings, terminal, signal } = invocation;
  if (noun === 'own agent') return ownAgents(settings, terminal).sort();
  // Agents may not list agents or policies. A key press must not add denials to the audit log.
  if (noun !== 'path' && !mayBeAdministrator(settings.identity.value)) return [];
  const names = await namesFrom(invocation.connect(), noun, signal);
  return noun === 'path' ? pathsFrom(names, begun) : names.sort();
}
