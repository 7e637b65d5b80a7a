/**
 * `leasehold __complete -- WORD …`, called by the shell scripts. Prints the kind of completion, then a line for each
 * candidate with a tab and its description. Prints no errors and ends within a second. Names go into a command line, so
 * only valid ones are printed.
 */
import { globSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { Writable } from 'node:stream';
import type { Leasehold } from '../../client/leasehold.ts';
import { pathViolation } from '../../core/path.ts';
import type { Command, Invocation } from '../command.ts';
import { createInvocation } from '../invocation.ts';
import { keyFileIn } from '../settings/data-dir.ts';
import { userKeyFile } from '../settings/identity.ts';
import { resolveSettings, userDirsOf } from '../settings/resolve.ts';
import { mayBeAdministrator } from '../settings/settings.ts';
import type { Terminal } from '../terminal.ts';
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
      const resolve = () => resolveSettings((name) => flags.get(name) ?? null, silent);
      const settings = await resolve();
      const signal = AbortSignal.timeout(serviceMs);
      const fixed = { rest: [], field: null, waitsForApprovals: false };
      const context = { ...fixed, terminal: silent, settings, signal, resolveSettings: resolve };
      invocation = createInvocation(context);
      const { noun, before, begun, verbs = [] } = target;
      const names = (await findNames(invocation, noun, begun)).filter((name) => name.startsWith(begun));
      const begunVerbs = verbs.filter(({ word }) => word.startsWith(begun));
      offers = [...begunVerbs, ...names.map((name) => ({ word: before + name, description: null }))];
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
  const { settings, signal } = invocation;
  if (noun === 'own agent') return ownAgents(invocation).sort();
  // Agents may not list agents or policies. A key press must not add denials to the audit log.
  if (noun !== 'path' && !mayBeAdministrator(settings.identity.value)) return [];
  const names = await namesFrom(invocation.connect(), noun, signal);
  return noun === 'path' ? pathsFrom(names, begun) : names.sort();
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Agents whose keys are on this machine. */
function ownAgents({ settings, terminal }: Invocation): string[] {
  const own = globSync('*.pem', { cwd: dirname(userKeyFile(userDirsOf(terminal), 'any')) });
  const served = globSync('*', { cwd: dirname(dirname(keyFileIn(settings.dataDir.value, 'any'))) });
  const names = new Set([...own.map((file) => basename(file, '.pem')), ...served]);
  return [...names].filter((name) => NAME.test(name));
}

/** Names received before the signal aborts. Never rejects. */
export async function namesFrom(vault: Leasehold, noun: Exclude<NameKind, 'own agent'>, signal: AbortSignal) {
  const found: string[] = [];
  try {
    const { credentials, agents, operators, policies, approvals } = vault;
    const options = { signal };
    const rows =
      noun === 'path'
        ? credentials.listAll({}, options)
        : noun === 'agent'
          ? agents.listAll(options)
          : noun === 'operator'
            ? operators.listAll(options)
            : noun === 'policy'
              ? policies.listAll(options)
              : approvals.listAll({ status: 'pending' }, options);
    for await (const row of rows)
      found.push('approval_id' in row ? row.approval_id : 'path' in row ? row.path : row.name);
  } catch {
    // Unreachable, denied or too slow: return what was received.
  }
  return found.filter((name) => (noun === 'path' ? pathViolation(name) === null : NAME.test(name)));
}

/** Paths up to the next slash, like directories; descends further while there is only one. */
export function pathsFrom(paths: readonly string[], begun: string): string[] {
  const upTo = (length: number): string[] => {
    const cut = paths
      .filter((path) => path.startsWith(begun))
      .map((path) => {
        const slash = path.indexOf('/', length);
        return slash === -1 ? path : path.slice(0, slash + 1);
      });
    return [...new Set(cut)];
  };
  let offers = upTo(begun.length);
  for (let [only, another] = offers; only?.endsWith('/') && another === undefined; [only, another] = offers) {
    offers = upTo(only.length);
  }
  return offers.sort();
}
