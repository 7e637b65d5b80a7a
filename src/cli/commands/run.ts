/** `leasehold run`: runs a program with secrets in its environment only. */
import { list, toggle } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { readIgnored } from '../../platform/inherited-signals.ts';
import { parseBindings } from '../../run/env-bindings.ts';
import { exitLike } from '../../run/exit-status.ts';
import { parseUses, type UseBinding } from '../../run/use-bindings.ts';
import { defineCommand, type Invocation, TTL } from '../command.ts';
import { useClientFor } from '../explain-denial.ts';
import { ignoreBrokenPipe, printNotice } from '../terminal.ts';

export const run = defineCommand({
  name: 'run',
  about: [
    'With --use PATH the program receives a base URL of the vault and, in place of the key, a token, in the variables that the SDKs of the credential’s service read. It never has the value. The token works only through the vault, and until the lease ends. --use needs an agent (--agent NAME). --use NAME=PATH sets NAME_BASE_URL and NAME_API_KEY instead.',
    'All leases are acquired first; if one fails, the program does not start. They are revoked when the program ends; until then use leases are renewed, unless --ttl is given. The program keeps its terminal, colours, signals and exit code.',
    'In an --env-file, leasehold://path?use does the same as --use for the variable that has it. The value leasehold://path or leasehold://path?version=N is replaced by the credential’s, and so is {{leasehold://path}} inside a value ({{leasehold://path | url}} in a URL). Everything else is passed on unchanged.',
    'With NAME, the variables come from the table [run.NAME] of leasehold.toml; without NAME, --use, --env and --env-file, from [run.default].',
    'Leasehold’s own variables and variables that look like secrets are withheld from the program, unless --keep names them.',
    'Values are redacted in the output: in plain text, base64 and hex, percent-encoded and JSON-escaped, among others. This protects against accidents, not against a program that reveals a value on purpose.',
  ],
  flags: {
    use: list('[NAME=]PATH', 'let the program use the credential PATH without seeing its value'),
    env: list('NAME=PATH', 'set the variable NAME to the value of the credential PATH', {
      short: 'e',
    }),
    'env-file': list('FILE', 'read variables and references from a .env file'),
    files: toggle('pass values in private files, and set the variables to their paths'),
    keep: list('NAME', 'pass on this variable even if it looks like a secret; * for all except Leasehold’s own'),
    'no-masking': toggle('do not redact the output'),
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
    { line: 'leasehold --agent shop run --use openai/key -- npm start', does: 'use an API with its unchanged SDK' },
    { line: 'leasehold --agent shop run --env PGPASSWORD=prod/db/password -- psql', does: 'run psql with a password' },
    { line: 'leasehold run -- npm start', does: 'use the agent and [run.default] of leasehold.toml' },
    {
      line: 'leasehold --agent shop run --env-file .env -- npm start',
      does: 'use references in a file that can be committed',
    },
  ],
  printsNoRecords: true,
  handlesSignals: true,
  async run(invocation, flags, name) {
    const { terminal, rest } = invocation;
    const [file, ...words] = rest;
    if (file === undefined || file === '')
      throw new UsageError(
        'Put the command after --: leasehold --agent NAME run --use PATH -- COMMAND',
        'leasehold run --help',
      );
    const { env, 'env-file': envFiles, keep, files: hasFiles, ttl: ttlSeconds } = flags;
    const isTyped = env.length + envFiles.length + flags.use.length > 0;
    const { mapping, uses } = findMapping(invocation, name, isTyped);
    const bindings = await parseBindings({ mapping, envFiles, env });
    const job = {
      ...bindings,
      uses: [...uses, ...bindings.uses, ...parseUses(flags.use, '--use')],
      command: [file, ...words] as const,
      keep,
      hasFiles,
      isMasked: !flags['no-masking'],
      ttlSeconds,
    };
    if (job.uses.length > 0) checkAddress(invocation);
    if (job.wanted.length + job.uses.length > 0) invocation.connect();
    ignoreBrokenPipe(terminal);
    // WHY a dynamic import: other commands start faster without pseudo-terminals and masking.
    const { run: runProgram } = await import('../../run/run.ts');
    const status = await runProgram(job, useClientFor(invocation), {
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

/** Reads [run.NAME], or [run.default] if no flag names a variable or a credential. @throws UsageError */
function findMapping({ settings, terminal }: Invocation, name: string | null, isTyped: boolean) {
  if (name === null && isTyped) return { mapping: [], uses: [] as UseBinding[] };
  const found = settings.runs.get(name ?? 'default');
  if (found === undefined) {
    const hint = 'Use --use PATH, --env NAME=PATH or --env-file FILE, or add [run.default] to leasehold.toml.';
    throw new UsageError(name === null ? 'no variables to pass' : `no settings file contains [run.${name}]`, hint);
  }
  const { variables, uses } = found.value;
  const mapping = [...variables].map(([variable, path]) => `${variable}=${path}`);
  // The credentials were not named on the command line.
  const named = [...variables.keys(), ...uses.map((use) => `use of ${use}`)];
  if (name === null) printNotice(terminal, `leasehold: ${found.source}: ${named.join(', ')}`);
  return { mapping, uses: parseUses(uses, `${found.source} use`) };
}

/** @throws UsageError if programs cannot connect to the server */
function checkAddress({ settings: { address } }: Invocation): void {
  if (!address.value.startsWith('unix:')) return;
  throw new UsageError(
    '--use: programs cannot connect to a Unix socket',
    'Let the server listen on HOST:PORT too, and use --address.',
  );
}
