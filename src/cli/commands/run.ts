/**
 * `leasehold run` runs a program with secrets in its environment only. `leasehold inject` fills a template with values.
 */

import { resolve } from 'node:path';
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { list, text, toggle, withoutNulls } from '../../flags/flag.ts';
import { errnoSuffix, StartupError, UsageError } from '../../platform/errors.ts';
import { readIgnored } from '../../platform/inherited-signals.ts';
import { writeNewFile } from '../../platform/private-files.ts';
import { parseBindings, parseUses, type UseBinding } from '../../run/bindings.ts';
import { exitLike } from '../../run/child-process.ts';
import type { LeaseClient } from '../../run/leases.ts';
import { acquireLeases, releaseLeases } from '../../run/leases.ts';
import { fillTemplates, parseTemplate } from '../../run/references.ts';
import type { UseLeaseClient } from '../../run/use-variables.ts';
import { ErrorWithHint, withDenialHint } from '../call-hints.ts';
import { type Command, defineCommand, type Invocation, TTL } from '../command.ts';
import { readTextInput } from '../input.ts';
import { mayBeAdministrator } from '../settings/settings.ts';
import { ignoreBrokenPipe, printNotice } from '../terminal.ts';

const run = defineCommand({
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
    env: list('NAME=PATH', 'set the variable NAME to the value of the credential PATH', { short: 'e' }),
    'env-file': list('FILE', 'read variables and references from a .env file'),
    files: toggle('pass values in private files, and set the variables to their paths'),
    keep: list('NAME', 'pass on this variable even if it looks like a secret; * for all except Leasehold’s own'),
    'no-masking': toggle('do not redact the output'),
    ttl: TTL,
  },
  arguments: [{ name: 'NAME', help: 'use the table [run.NAME] of leasehold.toml', count: 'optional' }],
  rest: 'COMMAND [ARGUMENT …]',
  examples: {
    'leasehold --agent shop run --use openai/key -- npm start': 'use an API with its unchanged SDK',
    'leasehold --agent shop run --env PGPASSWORD=prod/db/password -- psql': 'run psql with a password',
    'leasehold run -- npm start': 'use the agent and [run.default] of leasehold.toml',
    'leasehold --agent shop run --env-file .env -- npm start': 'use references in a file that can be committed',
  },
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

const NAME = 'template';

const inject = defineCommand({
  name: 'inject',
  about: [
    'Write {{leasehold://PATH | url}} to percent-encode a value for a URL, and {{leasehold://PATH?version=N}} for a previous version. Other text stays unchanged.',
    'The result is written to a pipe, or with --out to a new file that only you can read. The leases are not revoked, because the result contains the values until you delete it. To give values to a program, prefer leasehold run.',
  ],
  arguments: [{ name: 'FILE', help: 'template file; - for standard input', count: 'one' }],
  flags: { out: text('FILE', 'write to this new file instead of standard output'), ttl: TTL },
  examples: {
    'leasehold --agent shop inject app.yaml.tpl --out app.yaml': 'write a configuration file with its secrets',
  },
  printsNoRecords: true,
  async run(invocation, { out, ttl: ttlSeconds }, file) {
    const { terminal, signal } = invocation;
    if (out === null && terminal.stdout.isTTY === true)
      throw new UsageError(
        'the values would be shown on the terminal',
        'Use --out FILE, or redirect the output to a pipe.',
      );
    const parsed = parseTemplate(NAME, await readTextInput(invocation, file), file);
    if (parsed === null) throw new UsageError(`${file}: contains no reference {{leasehold://PATH}}`);
    const { template, wanted } = parsed;
    invocation.connect();
    const leaseClient = leaseClientFor(invocation);
    const { values, leaseIds } = await acquireLeases(leaseClient, wanted, { ttlSeconds, signal });
    const filled = fillTemplates([template], values).get(NAME)?.reveal() ?? '';
    if (out === null) {
      terminal.stdout.write(filled);
      return;
    }
    const path = resolve(terminal.workingDirectory, out);
    try {
      writeNewFile(path, filled);
    } catch (error) {
      await releaseLeases(leaseClient, leaseIds);
      if (error instanceof StartupError) throw error;
      throw new UsageError(`${path} cannot be written${errnoSuffix(error)}`, 'Give the name of a new file.');
    }
    printNotice(terminal, `Wrote ${path}. It contains secrets: delete it when you no longer need it.`);
  },
});

function leaseClientFor(invocation: Invocation): LeaseClient {
  const vault = (): Leasehold => invocation.connect();
  return {
    retrieve: async (path, options) =>
      withDenialHint(invocation, { action: 'retrieve', path }, vault().credentials.retrieve(path, options)),
    revoke: async (leaseId, options) => vault().leases.revoke(leaseId, options),
  };
}

function useClientFor(invocation: Invocation): UseLeaseClient {
  const vault = (): Leasehold => invocation.connect();
  const { identity } = invocation.settings;
  return {
    ...leaseClientFor(invocation),
    issueUse: async (path, { ttlSeconds: ttl, signal }) => {
      const issuing = vault().useLeases.issue({ path, ...withoutNulls({ ttl }) }, { signal });
      try {
        return await withDenialHint(invocation, { action: 'use', path }, issuing);
      } catch (error) {
        const isDenied = error instanceof LeaseholdError && error.code === 'ACCESS_DENIED';
        if (!isDenied || !mayBeAdministrator(identity.value)) throw error;
        throw new ErrorWithHint(error, 'A program uses a credential as an agent: --agent NAME');
      }
    },
    baseUrl: (path) => vault().baseURL(path),
    read: async (leaseId, options) => vault().leases.read(leaseId, options),
    renew: async (leaseId, options) => vault().leases.renew(leaseId, options),
  };
}

export const COMMANDS: readonly Command[] = [run, inject];
