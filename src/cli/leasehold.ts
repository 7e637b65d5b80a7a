/** The command `leasehold`: finds the row of the table, and runs it. */
import { nearest, parseTyped, putFlagsBehind } from './arguments.ts';
import type { Command } from './command.ts';
import { fail } from './failing.ts';
import { nounOverview, overview, page } from './help.ts';
import { createInvocation, type Invoked } from './invoking.ts';
import { EXIT, Mistake } from './mistake.ts';
import { resolveSettings } from './settings/resolving.ts';
import type { Settings } from './settings/settings.ts';
import { COMMANDS, GROUPS } from './table.ts';
import { processTerminal, type Terminal } from './terminal.ts';
import { readVersion } from './version.ts';

interface Found {
  readonly command: Command;
  readonly words: readonly string[];
}

/** By two words or by one. @throws Mistake */
function find(words: readonly string[]): Found | string {
  const [first = '', second = ''] = words;
  const pair = COMMANDS.find(({ name }) => name === `${first} ${second}`);
  if (pair !== undefined) return { command: pair, words: words.slice(2) };
  const single = COMMANDS.find(({ name }) => name === first);
  if (single !== undefined) return { command: single, words: words.slice(1) };
  const verbs = COMMANDS.filter(({ name }) => name.startsWith(`${first} `));
  if (verbs.length === 0) {
    const near = nearest(first, [...new Set(COMMANDS.map(({ name }) => name.split(' ')[0] ?? ''))]);
    throw new Mistake(
      `there is no such command${near === null ? '' : `; is ${near} meant?`}`,
      'leasehold --help lists them all.',
    );
  }
  if (second === '' || second.startsWith('-')) return nounOverview(first, verbs);
  const near = nearest(
    second,
    verbs.map(({ name }) => name.slice(first.length + 1)),
  );
  throw new Mistake(
    `${first} has no such verb${near === null ? '' : `; is ${near} meant?`}`,
    `leasehold ${first} --help`,
  );
}

/** Resolves to the exit code. */
async function main(words: readonly string[], terminal: Terminal): Promise<number> {
  let settings: Settings | null = null;
  let invocation: Invoked | null = null;
  const interruption = new AbortController();
  try {
    const [first] = words;
    if (first === undefined || first === '--help' || first === '-h' || (first === 'help' && words.length === 1)) {
      terminal.stdout.write(overview(GROUPS));
      return EXIT.OK;
    }
    if (first === '--version' || first === '-V') {
      terminal.stdout.write(`leasehold ${readVersion()}\n`);
      return EXIT.OK;
    }
    if (first === '__complete') {
      const { answerShell } = await import('./completion/answering.ts');
      await answerShell(words.slice(1), COMMANDS, terminal);
      return EXIT.OK;
    }
    const found = find(first === 'help' ? [...words.slice(1), '--help'] : words);
    if (typeof found === 'string') {
      terminal.stdout.write(found);
      return EXIT.OK;
    }
    const typed = parseTyped(found.command, found.words);
    if (typed.wantsHelp) {
      terminal.stdout.write(page(found.command, terminal.stdout.columns));
      return EXIT.OK;
    }
    settings = await resolveSettings((name) => typed.flags.get(name)?.at(-1) ?? null, terminal);
    invocation = createInvocation(typed, settings, terminal, interruption.signal);
    if (found.command.handlesSignals !== true) abortOnSignals(interruption);
    return await found.command.run(invocation);
  } catch (error) {
    return fail(terminal, error, settings);
  } finally {
    await invocation?.close();
  }
}

/** What is under way ends in order; who says it twice means it. */
function abortOnSignals(interruption: AbortController): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => interruption.abort(new Mistake(`broken off (${signal})`)));
  }
}

const callersUmask = process.umask(0o077);
process.exitCode = await main(putFlagsBehind(process.argv.slice(2)), processTerminal(callersUmask));
