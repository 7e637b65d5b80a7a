/** The `agent` subcommands. */
import { constants, copyFileSync, existsSync, renameSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseAgentName } from '../../core/names.ts';
import { parseDuration, parsed, text, toggle, withoutNulls } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { ownCommand, ownCommandFile, quoteWord } from '../../platform/installation.ts';
import { MAX_GRACE_SECONDS } from '../../vault/agents/agent.ts';
import { withConflictHint } from '../call-hints.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, type Invocation, REQUESTS_IN_FLIGHT } from '../command.ts';
import { readOrMakeKey, withKeyFile } from '../key-files.ts';
import { pluralize } from '../output/cells.ts';
import { confirmDestructive } from '../prompt.ts';
import { userKeyFile } from '../settings/own-identity.ts';
import type { Precedence, Settings } from '../settings/settings.ts';
import { printNotice } from '../terminal.ts';

const NAME = { name: 'NAME', help: 'name of the agent', count: 'one' } as const;
const COLUMNS = ['name', 'description', 'public_key', 'registered_at'];

const add = defineCommand({
  name: 'agent add',
  about: [
    'The private key is written to a file that only you can read, by default ~/.config/leasehold/agents/NAME.pem, where --agent NAME finds it. The server receives only the public key. For an agent on another machine, make the key there and register its public key with --public-key.',
    'A new agent has no access until a policy grants it: see leasehold policy put.',
  ],
  arguments: [{ name: 'NAME', help: 'name of the agent: letters, digits, . _ and -', count: 'one' }],
  flags: {
    description: text('TEXT', 'description of the agent'),
    'new-key': text('FILE', 'write the new private key to this file'),
    'public-key': text(
      'FILE',
      'register this key instead of a new one: PEM, OpenSSH, a line ssh-ed25519 …, or base64 of its 32 bytes; of a private key only the public half is sent; - for standard input',
    ),
    'service-key': toggle('let the server make the key pair and keep it in its data directory'),
  },
  examples: {
    'leasehold agent add deploy-bot': 'register an agent on this machine',
    'openssl pkey -in bot.pem -pubout | leasehold agent add deploy-bot --public-key -':
      'register an agent on another machine',
  },
  async run(invocation, flags, given) {
    const { terminal, signal } = invocation;
    const name = parseAgentName(given, 'NAME');
    const vault = invocation.connect();
    const usualFile = userKeyFile(terminal, name);
    const { description, 'public-key': from, 'new-key': newFile } = flags;
    const key = flags['service-key'] ? null : await readOrMakeKey(invocation, from, newFile ?? usualFile);
    const file = key?.file ?? null;
    const body = { name, ...withoutNulls({ description, public_key: key?.publicKey }) };
    await withKeyFile(terminal, file, async () => {
      await invocation.output.record(await vault.agents.register(body, { signal }));
    });
    const keyFlags = file === null || file === usualFile ? [] : ['--key-file', file];
    if (file !== null) {
      const use = ['leasehold', '--agent', name, ...keyFlags].map(quoteWord).join(' ');
      printNotice(terminal, `The private key is in ${file}. Use it with: ${use}`);
    }
    // WHY not for a given key: its private key is on another machine, and the client is configured there.
    if (invocation.output.isTable && from === null) printNextSteps(invocation, name, keyFlags);
  },
});

function printNextSteps({ terminal, settings }: Invocation, name: string, keyFlags: readonly string[]): void {
  const file = ownCommandFile();
  const mcp = ['mcp', '--agent', name, ...keyFlags, ...connectionFlags(settings, ELSEWHERE)];
  const policy = ['policy', 'put', name, '--principal', `agent:${name}`];
  const grant = [...policy, '--resource', 'openai/key', '--action', 'use', ...connectionFlags(settings, ['flag'])];
  const toLine = (words: readonly string[]): string => `  ${words.map(quoteWord).join(' ')}`;
  const lines = [
    '',
    'Next: let it use a credential, such as openai/key:',
    toLine([ownCommand(terminal.environment), ...grant]),
    'Claude Code:',
    toLine(['claude', 'mcp', 'add', 'leasehold', '--', file, ...mcp]),
    'Codex, in ~/.codex/config.toml:',
    '  [mcp_servers.leasehold]',
    `  command = ${JSON.stringify(file)}`,
    `  args = [${mcp.map((word) => JSON.stringify(word)).join(', ')}]`,
  ];
  for (const line of lines) printNotice(terminal, line);
}

/** The settings that a client in another directory and environment lacks. */
const ELSEWHERE: readonly Precedence[] = ['flag', 'environment', 'project file'];

/** The flags that repeat the settings with these sources, so that a command reaches the same server. */
function connectionFlags(
  { address, dataDir, ownServer, caFile, allowsInsecureHttp }: Settings,
  sources: readonly Precedence[],
): string[] {
  const isHere = ({ level }: { readonly level: Precedence }): boolean => sources.includes(level);
  return [
    ...(isHere(address) ? ['--address', address.value] : []),
    ...(ownServer !== null && isHere(dataDir) ? ['--data-dir', dataDir.value] : []),
    ...(caFile !== null && isHere(caFile) ? ['--ca-file', caFile.value] : []),
    ...(allowsInsecureHttp ? ['--insecure-http'] : []),
  ];
}

const list = defineCommand({
  name: 'agent list',
  async run(invocation) {
    const agents = await Array.fromAsync(invocation.connect().agents.listAll(invocation));
    await invocation.output.records(agents, COLUMNS, 'No agents. Register one with: leasehold agent add NAME');
  },
});

const show = defineCommand({
  name: 'agent show',
  arguments: [NAME],
  async run(invocation, _flags, given) {
    const name = parseAgentName(given, 'NAME');
    await invocation.output.record(await invocation.connect().agents.read(name, invocation));
  },
});

const remove = defineCommand({
  name: 'agent delete',
  about: [
    'Policies that name the agent stay. An agent registered later under the same name inherits no sessions or leases.',
    REQUESTS_IN_FLIGHT,
  ],
  arguments: [NAME],
  flags: CONFIRMATION_FLAGS,
  printsNoRecords: true,
  async run(invocation, flags, given) {
    const { terminal, signal } = invocation;
    const name = parseAgentName(given, 'NAME');
    const vault = invocation.connect();
    const seen: { ifMatch?: string } = {};
    const describe = async (): Promise<string> => {
      seen.ifMatch = (await vault.agents.readTagged(name, { signal })).tag;
      const { meta } = await vault.leases.list({ agent: name, status: 'active', limit: 1 }, { signal });
      return `${name}: its sessions and ${pluralize(meta.total, 'active lease')} will end.`;
    };
    if (await confirmDestructive(invocation, flags, describe, 'Deregister it?')) {
      await withConflictHint(invocation, 'agent', name, vault.agents.deregister(name, { ...seen, signal }));
      const keyFile = userKeyFile(terminal, name);
      const left = existsSync(keyFile) ? ` Its private key is still in ${keyFile}.` : '';
      printNotice(terminal, `Deregistered ${name}.${left}`);
    }
  },
});

/** @throws UsageError */
function toGrace(given: string, field: string): number {
  const seconds = parseDuration(given);
  if (seconds !== null && seconds <= MAX_GRACE_SECONDS) return seconds;
  throw new UsageError(`${field}: must be a duration such as 0s or 15m, at most 7d`);
}

/**
 * Keeps the previous file under a name with the time. ORDER: the copy is made first, so that a crash leaves a key at
 * the path.
 */
function replaceKeyFile(made: string, file: string): void {
  const kept = `${file}.${new Date().toISOString().replaceAll(/[-:]/g, '')}`;
  if (existsSync(file)) copyFileSync(file, kept, constants.COPYFILE_EXCL);
  renameSync(made, file);
}

const rotate = defineCommand({
  name: 'agent rotate',
  about: [
    'A new key pair is made on this machine. Its file takes the place of the previous one when the server knows the new public key. The previous file is kept under a name with the time, because a restored backup may need it. Sessions stay, and end in an hour at most.',
  ],
  arguments: [NAME],
  flags: {
    grace: parsed('DURATION', 'for how long the previous key is valid, such as 0s or 15m (default 5m)', toGrace),
    'new-key': text(
      'FILE',
      'the file of the new private key; the previous file is kept (default: as agent add writes it)',
    ),
    'public-key': text('FILE', 'take this key instead of a new one, as for agent add'),
    'service-key': toggle('let the server make the key pair and replace the file in its data directory'),
  },
  async run(invocation, flags, given) {
    const { terminal, signal } = invocation;
    const name = parseAgentName(given, 'NAME');
    const { 'public-key': from, 'new-key': newFile } = flags;
    const vault = invocation.connect();
    const usualFile = resolve(terminal.workingDirectory, newFile ?? userKeyFile(terminal, name));
    const key = flags['service-key'] ? null : await readOrMakeKey(invocation, from, `${usualFile}.next`);
    const file = key?.file ?? null;
    const body = withoutNulls({ public_key: key?.publicKey, grace_seconds: flags.grace });
    await withKeyFile(terminal, file, async () => {
      const rotated = await vault.agents.rotate(name, body, { signal });
      // ORDER: the previous file stays until the server knows the new key.
      if (file !== null) replaceKeyFile(file, usualFile);
      await invocation.output.record(rotated);
    });
  },
});

export const COMMANDS: readonly Command[] = [add, list, show, rotate, remove];
