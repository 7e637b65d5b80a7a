/** The `get`, `put`, `list`, `history` and `delete` subcommands. */

import { resolve } from 'node:path';
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold, Retrieved } from '../../client/leasehold.ts';
import type { PutTargetsRequest } from '../../client/types.ts';
import { credentialType } from '../../core/grammars.ts';
import { type CredentialPath, parsePath } from '../../core/path.ts';
import { parsed, text, toggle, wholeNumber, withoutNulls } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteWord } from '../../platform/installation.ts';
import type { ServiceDefinition } from '../../vault/catalogue/definition.ts';
import { Secret } from '../../vault/credentials/credential.ts';
import { ErrorWithHint, withConflictHint, withDenialHint } from '../call-hints.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, type Invocation, TTL } from '../command.ts';
import { nullIfMissing, valueInArguments } from '../errors.ts';
import { decodeUtf8, readInput } from '../input.ts';
import { escapeText, type Format, pluralize } from '../output/cells.ts';
import { assertNotLoaderVariable, toVariableName } from '../output/output.ts';
import { askHidden, type Confirmation, confirmDestructive, type Question, requireConfirmation } from '../prompt.ts';
import { printNotice } from '../terminal.ts';
import { keyWarning, SERVICE, targetsAt } from './targets.ts';

const FIELDS: readonly string[] = ['path', 'value', 'lease_id', 'expires_at'];

const get = defineCommand({
  name: 'get',
  about: [
    'Writes only the value, byte for byte, to a pipe or file. On a terminal, asks for confirmation first unless --reveal is given. With -o or --field, prints the lease too.',
    'Each retrieval creates a lease and an entry in the audit log. To give a value to a program, prefer leasehold run, which revokes the lease when the program ends.',
  ],
  arguments: [{ name: 'PATH', help: 'path of the credential', count: 'one' }],
  flags: {
    reveal: toggle('show the value on a terminal without asking'),
    version: wholeNumber('retrieve this version (default: the newest)'),
    ttl: TTL,
  },
  examples: {
    'leasehold get prod/db/password | pbcopy': 'copy the value to the clipboard',
    'leasehold get prod/db/password --field lease_id': 'print only the lease id',
    'eval "$(leasehold get prod/db/password -o env)"': 'set PROD_DB_PASSWORD in this shell',
  },
  async run(invocation, { reveal, version, ttl: ttlSeconds }, given) {
    const { terminal, signal, output } = invocation;
    const path = parsePath(given, 'PATH');
    const { field } = output;
    // ORDER: before the retrieval, which creates a lease.
    if (field !== null && !FIELDS.includes(field)) {
      throw new UsageError(`--field: must be one of ${FIELDS.join(', ')}`);
    }
    if (formatFlag(invocation) === 'env' && field === null) assertNotLoaderVariable(toVariableName(path));
    const showsValue = field === null || field === 'value';
    if (showsValue && terminal.stdout.isTTY === true && !reveal) {
      const hint = 'Use --reveal, or redirect the output to a pipe or file.';
      await requireConfirmation(invocation, `This shows the value of ${path} on the terminal. Continue?`, hint);
    }
    const retrieving = invocation
      .connect()
      .credentials.retrieve(path, { ...withoutNulls({ version, ttlSeconds }), signal });
    await print(invocation, await withDenialHint(invocation, { action: 'retrieve', path }, retrieving));
  },
});

const ESCAPED =
  'WARNING  the value contains control characters, which are shown escaped. A pipe or a file receives the value byte for byte.';

/**
 * Only the flag selects a format here: a settings file or a variable must not change the output that a script reads.
 */
function formatFlag({ settings: { format } }: Invocation): Format | null {
  return format.level === 'flag' ? format.value : null;
}

async function print(invocation: Invocation, { value, ...lease }: Retrieved): Promise<void> {
  const { terminal, output } = invocation;
  const revealed = value.reveal();
  const record = { path: lease.path, value: revealed, lease_id: lease.lease_id, expires_at: lease.expires_at };
  const format = formatFlag(invocation);
  if (output.field === null && format === 'env') {
    output.variable(assertNotLoaderVariable(toVariableName(lease.path)), revealed);
    return;
  }
  if (format !== null || output.field !== null) {
    await output.record(record);
    return;
  }
  if (terminal.stdout.isTTY !== true) {
    terminal.stdout.write(revealed);
    return;
  }
  // WHY: an agent that may store the value could steer the terminal of an operator.
  const shown = escapeText(revealed);
  terminal.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`);
  if (shown !== revealed) printNotice(terminal, ESCAPED);
  printNotice(terminal, `Lease ${lease.lease_id} ends at ${lease.expires_at}.`);
}

const PATH = { name: 'PATH', help: 'path of the credential, such as prod/db/password', count: 'one' } as const;

const NEWLINE_IS_STORED =
  "the value ends with a newline, which is stored too. To store it without: printf '%s' VALUE, or … | tr -d '\\n'.";

const put = defineCommand({
  name: 'put',
  about: [
    'The value comes from a hidden prompt, from standard input (-) or from a file (@FILE), byte for byte. It is never an argument: shells record arguments, and every user of the machine can see them.',
    'Previous versions are kept, up to the configured number; leasehold get --version N retrieves one.',
    'With --service, agents can use the credential at that service without seeing the value: the catalogue contains its targets and placement. For other services see leasehold target put.',
  ],
  arguments: [
    PATH,
    { name: 'FROM', help: '- for standard input, @FILE for a file (default: prompt)', count: 'optional' },
  ],
  flags: {
    type: parsed(
      'TYPE',
      'type of the value: api_key, token, password, certificate, ssh_key (default generic)',
      credentialType.parse,
    ),
    description: text('TEXT', 'description, shown in lists'),
    'if-new': toggle('fail if the path exists'),
    service: SERVICE,
    origin: text('URL', 'with --service: your own host, for a service where each customer has one'),
  },
  examples: {
    'leasehold put prod/db/password': 'prompt for the value',
    'openssl rand -hex 32 | tr -d "\\n" | leasehold put prod/session-key -': 'store the output of a program',
    'leasehold put prod/tls/key @server.key --type certificate': 'store a file',
    'leasehold put openai/key --service openai': 'store a key that agents can use at OpenAI',
  },
  takesValue: true,
  async run(invocation, { type, description, 'if-new': onlyIfNew, service, origin }, pathText, from) {
    const { signal } = invocation;
    const path = parsePath(pathText, 'PATH');
    if (from !== null && from !== '-' && !from.startsWith('@')) throw valueInArguments();
    // ORDER: before the value is stored, so that a usage error stores nothing.
    const targets = toTargetsRequest(service, origin);
    const vault = invocation.connect();
    const value = from === null ? await askValue(invocation) : await readValue(invocation, from);
    const request = { path, value, ...withoutNulls({ type, description }) };
    const storing = vault.credentials.store(request, { onlyIfNew, signal });
    const stored = await withDenialHint(invocation, { action: 'store', path }, storing);
    const warning = service === null ? null : keyWarning(service, value.reveal());
    if (warning !== null) printNotice(invocation.terminal, warning);
    if (targets !== null) await putTargets(invocation, path, targets);
    const used = service === null ? {} : { service: service.name };
    // WHY no created_at: it is the creation time of the first version.
    await invocation.output.record({ ...stored, ...used }, ['path', 'type', 'version', ...Object.keys(used)]);
  },
});

/** Null without a service. @throws UsageError */
function toTargetsRequest(service: ServiceDefinition | null, origin: string | null): PutTargetsRequest | null {
  if (service === null) {
    if (origin === null) return null;
    throw new UsageError('--origin: needs --service', 'For any other service: leasehold target put PATH --origin URL');
  }
  if (origin !== null && !service.needsHost) {
    throw new UsageError(`--origin: ${service.name} has the same hosts for each customer`);
  }
  const targets = targetsAt(service, origin === null ? [] : [origin]);
  return { service: service.name, ...withoutNulls({ targets }) };
}

/** @throws ErrorWithHint, which states that the value is stored */
async function putTargets(invocation: Invocation, path: CredentialPath, body: PutTargetsRequest): Promise<void> {
  try {
    await invocation.connect().targets.put(path, body, { signal: invocation.signal });
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    const host = body.targets?.[0] === undefined ? '' : ` --origin ${body.targets[0].origin}`;
    const again = `leasehold target put ${quoteWord(path)} --service ${body.service}${host}`;
    throw new ErrorWithHint(error, `To set them: ${again}`, 'The value is stored, but its targets are not set: ');
  }
}

async function askValue(question: Question): Promise<Secret> {
  const value = await askHidden(question, 'Value');
  if (value.reveal() !== (await askHidden(question, 'Repeat the value')).reveal())
    throw new UsageError('the values differ');
  if (value.reveal() === '') throw new UsageError('the value is empty');
  return value;
}

/** A limit above the server's own, which rejects longer values. */
const MAX_VALUE_MIB = 1;

/** Reads the value byte for byte, from `-` or `@FILE`. Messages do not repeat the name, because it may be a value. */
async function readValue(question: Question, from: string): Promise<Secret> {
  const { terminal } = question;
  const name = from === '-' ? 'standard input' : 'the file of the value';
  const file = from === '-' ? from : resolve(terminal.workingDirectory, from.slice(1));
  const text = decodeUtf8(await readInput(question, file, MAX_VALUE_MIB, name), name, true);
  if (text === '') throw new UsageError(`${name} is empty`);
  // A single line with its newline, as `echo` and editors write it, is rarely intended.
  if (/^[^\r\n]*\r?\n$/.test(text)) printNotice(terminal, `WARNING  ${NEWLINE_IS_STORED}`);
  return new Secret(text);
}

const list = defineCommand({
  name: 'list',
  about: ['An agent sees only the paths that a policy lets it list.'],
  arguments: [{ name: 'PREFIX', help: 'only paths that start with PREFIX', count: 'optional' }],
  flags: { type: parsed('TYPE', 'only of this type', credentialType.parse) },
  examples: {
    'leasehold list prod/ -o json': 'list everything below prod/ as JSON',
  },
  async run(invocation, { type }, prefix) {
    const { signal } = invocation;
    const all = await Array.fromAsync(invocation.connect().credentials.listAll(withoutNulls({ type }), { signal }));
    const found = all.filter(({ path }) => path.startsWith(prefix ?? ''));
    const nothing =
      (prefix ?? '') === '' && type === null
        ? 'No credentials that you may list. Store one with: leasehold put PATH'
        : 'No matching credentials that you may list. To list all: leasehold list';
    await invocation.output.records(found, ['path', 'type', 'description', 'updated_at', 'access_count'], nothing);
  },
});

const history = defineCommand({
  name: 'history',
  arguments: [PATH],
  async run(invocation, _flags, given) {
    const path = parsePath(given, 'PATH');
    const reading = invocation.connect().credentials.readMetadata(path, { signal: invocation.signal });
    const { versions } = await withDenialHint(invocation, { action: 'list', path }, reading);
    await invocation.output.records(versions, ['version', 'created_at'], 'No versions are kept.');
  },
});

const DELETED_COLUMNS = ['path', 'type', 'updated_at', 'access_count'];

const remove = defineCommand({
  name: 'delete',
  about: [
    'With --recursive, deletes every credential below PATH/ that you may list, but not PATH itself, after showing the list and asking for confirmation.',
  ],
  arguments: [PATH],
  flags: { recursive: toggle('delete everything below PATH/', { short: 'r' }), ...CONFIRMATION_FLAGS },
  examples: {
    'leasehold delete old/shop --recursive --dry-run': 'list the credentials that would be deleted below old/shop/',
  },
  async run(invocation, { recursive: isRecursive, ...confirmation }, text) {
    const path = parsePath(isRecursive ? text.replace(/\/$/, '') : text, 'PATH');
    const vault = invocation.connect();
    if (isRecursive) await removeBelow(invocation, confirmation, vault, `${path}/`);
    else await removeOne(invocation, confirmation, vault, path);
  },
});

async function removeOne(
  invocation: Invocation,
  confirmation: Confirmation,
  vault: Leasehold,
  path: CredentialPath,
): Promise<void> {
  const { terminal, signal } = invocation;
  const seen: { ifMatch?: string } = {};
  const describe = async (): Promise<string> => {
    const reading = vault.credentials.readMetadataTagged(path, { signal });
    const { data, tag } = await withDenialHint(invocation, { action: 'list', path }, reading);
    const { versions } = data;
    seen.ifMatch = tag;
    const { meta } = await vault.leases.list({ path, status: 'active', limit: 1 }, { signal });
    const leases = pluralize(meta.total, 'active lease');
    return `${path}: ${pluralize(versions.length, 'version')} and ${leases} will be deleted.`;
  };
  if (!(await confirmDestructive(invocation, confirmation, describe, 'Delete it?'))) return;
  const deleting = withConflictHint(
    invocation,
    'credential',
    path,
    vault.credentials.delete(path, { ...seen, signal }),
  );
  await withDenialHint(invocation, { action: 'delete', path }, deleting);
  printNotice(terminal, `Deleted ${path}.`);
}

/** Deletes only the listed credentials; those that were stored after the list was read stay. */
async function removeBelow(
  invocation: Invocation,
  confirmation: Confirmation,
  vault: Leasehold,
  prefix: string,
): Promise<void> {
  const { terminal, signal, output } = invocation;
  const all = await Array.fromAsync(vault.credentials.listAll({}, { signal }));
  const found = all.filter(({ path }) => path.startsWith(prefix));
  if (found.length === 0) throw new LeaseholdError('NOT_FOUND', `No credentials below ${prefix} that you may list.`);
  const describe = async (): Promise<string> => {
    await output.records(found, DELETED_COLUMNS, null);
    return `${pluralize(found.length, 'credential')} below ${prefix} will be deleted, and all their leases revoked.`;
  };
  if (!(await confirmDestructive(invocation, confirmation, describe, 'Delete?'))) return;
  let deleted = 0;
  try {
    for (const { path } of found) {
      // It may have been deleted since it was listed.
      const deleting = nullIfMissing(vault.credentials.delete(path, { signal }));
      await withDenialHint(invocation, { action: 'delete', path }, deleting);
      deleted += 1;
    }
  } finally {
    printNotice(terminal, `Deleted ${deleted} of ${pluralize(found.length, 'credential')} below ${prefix}.`);
  }
}

export const COMMANDS: readonly Command[] = [get, put, list, history, remove];
