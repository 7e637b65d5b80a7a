/** Commands on agents. */
import { existsSync } from 'node:fs';
import { LeaseholdError } from '../../client/errors.ts';
import { parseAgentName } from '../../core/names.ts';
import type { Command } from '../command.ts';
import { confirmDestructive } from '../confirm.ts';
import { EXIT } from '../errors.ts';
import { YES } from '../flags.ts';
import { type MadeKey, makeKeyFile, readPublicKey } from '../key-files.ts';
import { quoteWord } from '../output/variables.ts';
import { pluralize } from '../plural.ts';
import { userKeyFile } from '../settings/identity.ts';
import { placesOf } from '../settings/resolve.ts';
import { printNotice } from '../terminal.ts';

const NAME = { name: 'NAME', help: 'of the agent', count: 'one', completes: 'agent' } as const;
const COLUMNS = ['name', 'description', 'public_key', 'registered_at'];

const add: Command = {
  name: 'agent add',
  summary: 'Registers an agent, with a key that is made here and stays here',
  about: [
    'The private key is written to a file that only you can read (by default ~/.config/leasehold/agents/NAME.pem, where --agent NAME finds it), and the service gets the public half alone. For an agent on another machine make the key there, and register its public half with --public-key.',
    'An agent may do nothing until a policy names it: leasehold policy put.',
  ],
  arguments: [{ name: 'NAME', help: 'of the agent: letters, digits, . _ and -', count: 'one' }],
  flags: [
    { name: 'description', value: 'TEXT', help: 'for people' },
    { name: 'new-key', value: 'FILE', help: 'where the new private key is written', completes: 'file' },
    {
      name: 'public-key',
      value: 'FILE',
      help: 'registers this one instead: PEM or an OpenSSH key, of which only the public half is sent, a line ssh-ed25519 …, or base64 of its 32 bytes; - for standard input',
      completes: 'file',
    },
    { name: 'service-key', value: null, help: 'lets the service make the pair, and keep it in its data directory' },
  ],
  examples: [
    { line: 'leasehold agent add deploy-bot', does: 'an agent on this machine' },
    { line: 'openssl pkey -in bot.pem -pubout | leasehold agent add deploy-bot --public-key -', does: 'one elsewhere' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { terminal, signal } = invocation;
    const name = parseAgentName(invocation.argument('NAME'), 'NAME');
    const vault = invocation.connect();
    const made = await makePublicKey();
    const description = invocation.flag('description');
    const body = {
      name,
      ...(description === null ? {} : { description }),
      ...(made === null ? {} : { public_key: made.publicKey }),
    };
    try {
      await invocation.output.record(await vault.agents.register(body, { signal }));
    } catch (error) {
      // Where it is not known that nothing was done, the agent may be registered, and this its only key.
      const isRefused = error instanceof LeaseholdError && error.status !== null && error.status < 500;
      if (isRefused) made?.remove();
      else if (made?.file)
        printNotice(terminal, `Its private key is in ${made.file}: look with leasehold agent show ${name}.`);
      throw error;
    }
    if (made !== null && made.file !== null)
      printNotice(terminal, `Its private key is in ${made.file}. ${useOf(name, made.file)} uses it.`);
    return EXIT.OK;

    function useOf(agent: string, file: string): string {
      const isFound = file === userKeyFile(placesOf(terminal), agent);
      return `leasehold --agent ${agent}${isFound ? '' : ` --key-file ${quoteWord(file)}`}`;
    }

    async function makePublicKey(): Promise<MadeKey | null> {
      if (invocation.isOn('service-key')) return null;
      const given = invocation.flag('public-key');
      if (given !== null)
        return { publicKey: await readPublicKey(invocation, given), file: null, remove: () => undefined };
      return makeKeyFile(invocation.flag('new-key') ?? userKeyFile(placesOf(terminal), name), terminal);
    }
  },
};

const list: Command = {
  name: 'agent list',
  summary: 'Lists agents',
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const vault = invocation.connect();
    const agents = await Array.fromAsync(vault.agents.listAll(invocation));
    await invocation.output.records(agents, COLUMNS, 'There is no agent. leasehold agent add NAME registers one.');
    return EXIT.OK;
  },
};

const show: Command = {
  name: 'agent show',
  summary: 'Shows an agent',
  arguments: [NAME],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const name = parseAgentName(invocation.argument('NAME'), 'NAME');
    const vault = invocation.connect();
    await invocation.output.record(await vault.agents.read(name, invocation));
    return EXIT.OK;
  },
};

const remove: Command = {
  name: 'agent delete',
  summary: 'Deregisters an agent: its sessions and leases end at once',
  about: ['Policies that name it stay; an agent registered anew by that name inherits no session and no lease.'],
  arguments: [NAME],
  flags: [YES, { name: 'dry-run', value: null, help: 'only says what would be done' }],
  asksService: true,
  async run(invocation) {
    const { terminal, signal } = invocation;
    const name = parseAgentName(invocation.argument('NAME'), 'NAME');
    const vault = invocation.connect();
    const describe = async (): Promise<string> => {
      await vault.agents.read(name, { signal });
      const { meta } = await vault.leases.list({ agent: name, status: 'active', limit: 1 }, { signal });
      return `${name}: its sessions and ${pluralize(meta.total, 'active lease')} will end.`;
    };
    const ended = await confirmDestructive(invocation, describe, 'Deregister it?');
    if (ended !== null) return ended;
    await vault.agents.deregister(name, { signal });
    printNotice(terminal, `Deregistered ${name}.`);
    const keyFile = userKeyFile(placesOf(terminal), name);
    if (existsSync(keyFile))
      printNotice(terminal, `Its private key is still in ${keyFile}: delete it when nothing needs it.`);
    return EXIT.OK;
  },
};

export const AGENT_COMMANDS: readonly Command[] = [add, list, show, remove];
