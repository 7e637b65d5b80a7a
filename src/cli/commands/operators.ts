/** The `operator` subcommands. */
import { renameSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Operator } from '../../client/types.ts';
import { OPERATOR_PREFIX, parseOperatorName } from '../../core/names.ts';
import { list, parsed, text, toggle, withoutNulls } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteWord } from '../../platform/installation.ts';
import { parseRoles, ROLES } from '../../vault/operators/operator.ts';
import { withConflictHint } from '../call-hints.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, type Invocation } from '../command.ts';
import { readOrMakeKey, withKeyFile } from '../key-files.ts';
import { pluralize } from '../output/cells.ts';
import { confirmDestructive } from '../prompt.ts';
import { userKeyFile } from '../settings/own-identity.ts';
import { printNotice } from '../terminal.ts';
import { consoleUrl } from './console.ts';

const NAME = { name: 'NAME', help: 'name of the operator', count: 'one' } as const;
const COLUMNS = ['name', 'roles', 'signs_in_with', 'description', 'added_at'];
/** WHY `@` decides: every e-mail address contains one, and subjects of providers usually do not. */
const OIDC_FLAG = parsed('SUBJECT_OR_EMAIL', 'the operator at the identity provider', (given) =>
  given.includes('@') ? { email: given } : { subject: given },
);
const ROLE_FLAG = list(
  'ROLE',
  'viewer (sees everything but values), approver (answers requests), editor (makes changes that policies grant it) or admin (everything)',
);
const PUBLIC_KEY_HELP =
  'take this key instead of a new one: PEM, OpenSSH, a line ssh-ed25519 …, or base64 of its 32 bytes; - for standard input';

/** The name without the prefix, after its grammar was checked. @throws ApiError */
function nameOf(given: string): string {
  return parseOperatorName(given, 'NAME').slice(OPERATOR_PREFIX.length);
}

const add = defineCommand({
  name: 'operator add',
  about: [
    'With --invite, prints a link with which the operator registers a passkey. With --oidc, the operator signs in at the identity provider of the server. With either, a key is made only if you ask for one with --new-key.',
    'The private key is written to a file that only you can read, by default ~/.config/leasehold/operators/NAME.pem, where --operator NAME finds it. The server receives only the public key.',
    'An editor may touch only what policies for operator:NAME grant it. Once there is an operator with the role admin, keep the administrator’s token for emergencies: its use leaves an entry.',
  ],
  arguments: [{ name: 'NAME', help: 'name of the operator: letters, digits, . _ and -', count: 'one' }],
  flags: {
    role: ROLE_FLAG,
    description: text('TEXT', 'description of the operator'),
    'new-key': text('FILE', 'write the new private key to this file'),
    'public-key': text('FILE', PUBLIC_KEY_HELP),
    invite: toggle('print a link for a passkey, which works once, for 24 hours'),
    oidc: OIDC_FLAG,
  },
  examples: {
    'leasehold operator add alice --role admin': 'add an operator who may do everything',
    'leasehold operator add carol --role viewer --invite': 'add an operator who signs in with a passkey',
    'leasehold operator add dora --role viewer --oidc dora@example.com':
      'add an operator who signs in at the identity provider',
    'leasehold operator add bob --role approver --public-key bob.pub':
      'add an operator whose key is on another machine',
  },
  async run(invocation, flags, given) {
    const { terminal, signal } = invocation;
    const name = nameOf(given);
    const roles = [...parseRoles(requireRoles(flags.role))];
    const usualFile = userKeyFile(terminal, OPERATOR_PREFIX + name);
    const hasNoKey = (flags.invite || flags.oidc !== null) && flags['public-key'] === null && flags['new-key'] === null;
    const key = hasNoKey ? null : await readOrMakeKey(invocation, flags['public-key'], flags['new-key'] ?? usualFile);
    const body = {
      name,
      roles,
      ...withoutNulls({ public_key: key?.publicKey, description: flags.description, identity: flags.oidc }),
    };
    await withKeyFile(terminal, key?.file ?? null, async () => {
      await invocation.output.record(await invocation.connect().operators.add(body, { signal }));
    });
    if (flags.invite) await printInvitation(invocation, name);
    if (key !== null && key.file !== null) {
      const keyFlag = key.file === usualFile ? '' : ` --key-file ${quoteWord(key.file)}`;
      printNotice(terminal, `The private key is in ${key.file}. Use it with: leasehold --operator ${name}${keyFlag}`);
    }
    if (roles.includes('editor') && !roles.includes('admin')) {
      const grant = `leasehold policy put ${name}-edits --principal operator:${name} --resource 'PREFIX/*' --action store`;
      printNotice(terminal, `An editor may act only on paths that policies grant it, such as: ${grant}`);
    }
  },
});

async function makeInvitation(invocation: Invocation, name: string) {
  const { code, expires_at } = await invocation.connect().operators.invite(name, invocation);
  return { name, link: consoleUrl(invocation.settings.address.value, `enrol#${code}`), expires_at };
}

async function printInvitation(invocation: Invocation, name: string): Promise<void> {
  const { terminal } = invocation;
  const { link, expires_at } = await makeInvitation(invocation, name);
  printNotice(terminal, `Give this link to ${name} alone; it registers one passkey until ${expires_at}:`);
  printNotice(terminal, link);
}

const invite = defineCommand({
  name: 'operator invite',
  about: ['The link works once, for 24 hours. A passkey that is added or removed voids it, and so does a rotation.'],
  arguments: [NAME],
  async run(invocation, _flags, given) {
    await invocation.output.record(await makeInvitation(invocation, nameOf(given)));
  },
});

/** @throws UsageError */
function requireRoles(given: readonly string[]): readonly string[] {
  if (given.length > 0) return given;
  throw new UsageError('--role is missing', `The roles are ${ROLES.join(', ')}.`);
}

function waysIn({ public_key, passkeys, identity }: Pick<Operator, 'public_key' | 'passkeys' | 'identity'>): string {
  const ways = [
    ...(public_key === null ? [] : ['key']),
    ...(passkeys.length === 0 ? [] : [pluralize(passkeys.length, 'passkey')]),
    ...(identity === null ? [] : [identity.email ?? identity.subject ?? '']),
  ];
  return ways.join(', ');
}

const listAll = defineCommand({
  name: 'operator list',
  async run(invocation) {
    const operators = await Array.fromAsync(invocation.connect().operators.listAll(invocation));
    const rows = operators.map(({ roles, ...operator }) => ({
      ...operator,
      roles: roles.join(', '),
      signs_in_with: waysIn(operator),
    }));
    await invocation.output.records(
      rows,
      COLUMNS,
      'No operators. Add one with: leasehold operator add NAME --role admin',
    );
  },
});

const show = defineCommand({
  name: 'operator show',
  arguments: [NAME],
  async run(invocation, _flags, given) {
    await invocation.output.record(await invocation.connect().operators.read(nameOf(given), invocation));
  },
});

const set = defineCommand({
  name: 'operator set',
  about: [
    'New roles apply to the next request of the operator. The last operator with the role admin keeps it.',
    'A passkey is removed in the console, under Settings.',
  ],
  arguments: [NAME],
  flags: {
    role: ROLE_FLAG,
    description: text('TEXT', 'description of the operator'),
    oidc: OIDC_FLAG,
    'no-oidc': toggle('end signing in at the identity provider'),
  },
  async run(invocation, flags, given) {
    const name = nameOf(given);
    const { operators } = invocation.connect();
    const { signal } = invocation;
    const { data: known, tag } = await operators.readTagged(name, { signal });
    const roles = flags.role.length === 0 ? known.roles : [...parseRoles(flags.role)];
    const identity = flags['no-oidc'] ? { identity: null } : withoutNulls({ identity: flags.oidc });
    const body = { roles, description: flags.description ?? known.description, ...identity };
    const replacing = operators.replace(name, body, { ifMatch: tag, signal });
    await invocation.output.record(await withConflictHint(invocation, 'operator', name, replacing));
  },
});

const rotate = defineCommand({
  name: 'operator rotate',
  about: [
    'A new key pair is made on this machine. Its file replaces the previous one when the server knows the new key.',
  ],
  arguments: [NAME],
  flags: {
    'new-key': text('FILE', 'the file of the private key, which is replaced (default: as operator add writes it)'),
    'public-key': text('FILE', PUBLIC_KEY_HELP),
  },
  async run(invocation, flags, given) {
    const { terminal, signal } = invocation;
    const name = nameOf(given);
    const usualFile = userKeyFile(terminal, OPERATOR_PREFIX + name);
    const file = resolve(terminal.workingDirectory, flags['new-key'] ?? usualFile);
    const key = await readOrMakeKey(invocation, flags['public-key'], `${file}.next`);
    await withKeyFile(terminal, key.file, async () => {
      const rotated = await invocation.connect().operators.rotate(name, { public_key: key.publicKey }, { signal });
      // ORDER: the previous file stays until the server knows the new key.
      if (key.file !== null) renameSync(key.file, file);
      await invocation.output.record(rotated);
    });
  },
});

const remove = defineCommand({
  name: 'operator delete',
  arguments: [NAME],
  flags: CONFIRMATION_FLAGS,
  printsNoRecords: true,
  async run(invocation, flags, given) {
    const { terminal, signal } = invocation;
    const name = nameOf(given);
    const { operators } = invocation.connect();
    const seen: { ifMatch?: string } = {};
    const describe = async (): Promise<string> => {
      const { data, tag } = await operators.readTagged(name, { signal });
      seen.ifMatch = tag;
      return `${name} (${data.roles.join(', ')}): its sessions and leases will end.`;
    };
    if (await confirmDestructive(invocation, flags, describe, 'Remove it?')) {
      await withConflictHint(invocation, 'operator', name, operators.remove(name, { ...seen, signal }));
      printNotice(terminal, `Removed ${name}.`);
    }
  },
});

export const COMMANDS: readonly Command[] = [add, invite, listAll, show, set, rotate, remove];
