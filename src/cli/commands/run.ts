/** `leasehold run`: a program with values in its environment, and nowhere else. */

import { UsageError } from '../../platform/errors.ts';
import { readIgnored } from '../../platform/inherited-signals.ts';
import { parseBindings } from '../../run/env-bindings.ts';
import { exitLike } from '../../run/exit-status.ts';
import { LeaseAcquisitionError } from '../../run/leases.ts';
import { run as runProgram } from '../../run/run.ts';
import type { Command, Invocation } from '../command.ts';
import { readDuration } from '../flag-values.ts';
import { lenderOf, tellRefusals } from '../lease-env.ts';
import { ignoreBrokenPipe, printNotice } from '../terminal.ts';

export const run: Command = {
  name: 'run',
  summary: 'Runs a program with values in its environment, masked in its output',
  about: [
    'All values are lent first: if one is not, nothing starts. At the end the leases are revoked. Terminal, colours, signals and exit code are the program’s own.',
    'In a file given with --env-file a value that is leasehold://path, or leasehold://path?version=N, is replaced, and so is {{leasehold://path}} inside a value ({{leasehold://path | url}} in a URL); everything else is passed on as it is.',
    'Without --env and --env-file the variables come from the table [run.default] of leasehold.toml, with NAME from [run.NAME].',
    'The vault’s own variables and what looks like a secret are not passed on, unless --keep names them.',
    'Masking finds values in plain text, base64, hex, and as URLs and JSON write them. It guards against accidents, not against a program that wants to show a value.',
  ],
  flags: [
    {
      name: 'env',
      short: 'e',
      value: 'NAME=PATH',
      help: 'the variable gets the value of the credential',
      isRepeatable: true,
      completes: 'assignment',
    },
    {
      name: 'env-file',
      value: 'FILE',
      help: 'variables and references from a .env file',
      isRepeatable: true,
      completes: 'file',
    },
    { name: 'files', value: null, help: 'variables hold paths of private files with the values' },
    {
      name: 'keep',
      value: 'NAME',
      help: 'passes a variable on whatever it looks like; * all but the vault’s own',
      isRepeatable: true,
    },
    { name: 'no-masking', value: null, help: 'leaves the output alone' },
    { name: 'ttl', value: 'DURATION', help: 'asks for shorter leases than the policies allow, such as 90s or 15m' },
  ],
  arguments: [
    {
      name: 'NAME',
      help: 'of [run.NAME] in leasehold.toml; default where nothing else says what is delivered',
      count: 'optional',
    },
  ],
  rest: 'COMMAND [ARGUMENT …]',
  examples: [
    { line: 'leasehold run --env PGPASSWORD=prod/db/password -- psql', does: 'a session of psql' },
    { line: 'leasehold run -- npm start', does: 'with the variables that [run.default] of leasehold.toml maps' },
    { line: 'leasehold run --env-file .env -- npm start', does: 'with references in a file that can be committed' },
  ],
  asksService: true,
  handlesSignals: true,
  async run(invocation) {
    const { terminal, rest } = invocation;
    const [file, ...words] = rest;
    if (file === undefined || file === '')
      throw new UsageError('Put the command after --: leasehold run -e NAME=PATH -- COMMAND', 'leasehold run --help');
    const [env, envFiles] = [invocation.flags('env'), invocation.flags('env-file')];
    const mapping = findMapping(invocation, env.length + envFiles.length > 0);
    try {
      const job = {
        ...(await parseBindings({ mapping, envFiles, env })),
        command: [file, ...words] as const,
        keep: invocation.flags('keep'),
        hasFiles: invocation.isOn('files'),
        isMasked: !invocation.isOn('no-masking'),
        ttlSeconds: readDuration(invocation, 'ttl'),
      };
      const vault = job.wanted.length === 0 ? null : invocation.connect();
      ignoreBrokenPipe(terminal);
      const ending = await runProgram(job, lenderOf(invocation, vault), {
        streams: terminal,
        environment: terminal.environment,
        umask: terminal.umask,
        ignored: readIgnored(terminal.environment),
        say: (line) => printNotice(terminal, `leasehold: ${line}`),
      });
      // ORDER: this ends us before the command's own end could.
      if ('signal' in ending || ending.wasInterrupted === true) await invocation.close();
      return await exitLike(ending);
    } catch (error) {
      if (error instanceof LeaseAcquisitionError) throw tellRefusals(invocation, error.refused);
      throw error;
    }
  },
};

/** Of [run.NAME], or of [run.default] where nothing was typed. @throws UsageError */
function findMapping({ settings, terminal, optional }: Invocation, isTyped: boolean): string[] {
  const name = optional('NAME');
  if (name === null && isTyped) return [];
  const found = settings.runs.get(name ?? 'default');
  if (found === undefined) {
    const hint = 'Give --env NAME=PATH or --env-file FILE, or write [run.default] into leasehold.toml.';
    throw new UsageError(name === null ? 'there is nothing to deliver' : `no file has [run.${name}]`, hint);
  }
  const pairs = [...found.value].map(([variable, path]) => `${variable}=${path}`);
  // Nobody typed which credentials the program gets.
  if (name === null) printNotice(terminal, `leasehold: ${found.source}: ${[...found.value.keys()].join(', ')}`);
  return pairs;
}
