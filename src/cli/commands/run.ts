/** `leasehold run`: runs a program with secrets in its environment only. */

import { UsageError } from '../../platform/errors.ts';
import { readIgnored } from '../../platform/inherited-signals.ts';
import { parseBindings } from '../../run/env-bindings.ts';
import { exitLike } from '../../run/exit-status.ts';
import { defineCommand, type Invocation } from '../command.ts';
import { leaseClientFor } from '../explain-denial.ts';
import { list, TTL, toggle } from '../flags.ts';
import { ignoreBrokenPipe, printNotice } from '../terminal.ts';

export const run = defineCommand({
  name: 'run',
  summary: 'Run a program with secrets in its environment, masked in its output',
  about: [
    'All leases are acquired first; if one fails, the program does not start. They are revoked when the program ends. The program keeps its terminal, colours, signals and exit code.',
    'In an --env-file, the value leasehold://path or leasehold://path?version=N is replaced, and so is {{leasehold://path}} inside a value ({{leasehold://path | url}} in a URL). Everything else is passed on unchanged.',
    'With NAME, the variables come from the table [run.NAME] of leasehold.toml; without NAME, --env and --env-file, from [run.default].',
    'Leasehold’s own variables and variables that look like secrets are withheld from the program, unless --keep names them.',
    'Masking finds values in plain text, base64 and hex, percent-encoded and JSON-escaped. It protects against accidents, not against a program that reveals a value on purpose.',
  ],
  flags: {
    env: list('NAME=PATH', 'set the variable NAME to the value of the credential PATH', {
      short: 'e',
      completes: 'assignment',
    }),
    'env-file': list('FILE', 'read variables and references from a .env file', { completes: 'file' }),
    files: toggle('pass values in private files, and set the variables to their paths'),
    keep: list('NAME', 'pass on this variable even if it looks like a secret; * for all except Leasehold’s own'),
    'no-masking': toggle('do not mask the output'),
    ttl: TTL,
  },
  arguments: [
    {
      name: 'NAME',
      help: 'use the table [run.NAME] of leasehold.toml',
      count: 'optional',
    },
  ],
  rest: 'COMMAND [ARGUMENT …]',
  examples: [
    { line: 'leasehold run --env PGPASSWORD=prod/db/password -- psql', does: 'run psql with a password' },
    { line: 'leasehold run -- npm start', does: 'use the variables of [run.default] in leasehold.toml' },
    { line: 'leasehold run --env-file .env -- npm start', does: 'use references in a file that can be committed' },
  ],
  printsNoRecords: true,
  handlesSignals: true,
  async run(invocation, flags, name) {
    const { terminal, rest } = invocation;
    const [file, ...words] = rest;
    if (file === undefined || file === '')
      throw new UsageError('Put the command after --: leasehold run -e NAME=PATH -- COMMAND', 'leasehold run --help');
    const { env, 'env-file': envFiles, keep, files: hasFiles, ttl: ttlSeconds } = flags;
    const mapping = findMapping(invocation, name, env.length + envFiles.length > 0);
    const job = {
      ...(await parseBindings({ mapping, envFiles, env })),
      command: [file, ...words] as const,
      keep,
      hasFiles,
      isMasked: !flags['no-masking'],
      ttlSeconds,
    };
    if (job.wanted.length > 0) invocation.connect();
    ignoreBrokenPipe(terminal);
    // WHY a dynamic import: other commands start faster without pseudo-terminals and masking.
    const { run: runProgram } = await import('../../run/run.ts');
    const status = await runProgram(job, leaseClientFor(invocation), {
      streams: terminal,
      environment: terminal.environment,
      umask: terminal.umask,
      ignored: readIgnored(terminal.environment),
      say: (line) => printNotice(terminal, `leasehold: ${line}`),
    });
    // ORDER: exitLike may end this process, so the session is closed before.
    if ('signal' in status || status.wasInterrupted === true) await invocation.close();
    return await exitLike(status);
  },
});

/** Reads [run.NAME], or [run.default] when no flag says what to pass. @throws UsageError */
function findMapping({ settings, terminal }: Invocation, name: string | null, isTyped: boolean): string[] {
  if (name === null && isTyped) return [];
  const found = settings.runs.get(name ?? 'default');
  if (found === undefined) {
    const hint = 'Use --env NAME=PATH or --env-file FILE, or add [run.default] to leasehold.toml.';
    throw new UsageError(name === null ? 'no variables to pass' : `no settings file contains [run.${name}]`, hint);
  }
  const pairs = [...found.value].map(([variable, path]) => `${variable}=${path}`);
  // The credentials were not named on the command line.
  if (name === null) printNotice(terminal, `leasehold: ${found.source}: ${[...found.value.keys()].join(', ')}`);
  return pairs;
}
