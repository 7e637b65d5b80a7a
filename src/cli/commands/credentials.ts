/** Commands on credentials; `get` and `delete` have their own files. */
import { parseCredentialType } from '../../core/names.ts';
import { parsePath } from '../../core/path.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../errors.ts';
import { withDenialHint } from '../explain-denial.ts';
import { readFlag } from '../flag-values.ts';
import { printNotice } from '../terminal.ts';
import { endsLine, parseValueSource, readValue } from '../value-source.ts';
import { remove } from './delete.ts';

const PATH = {
  name: 'PATH',
  help: 'of the credential, such as prod/db/password',
  count: 'one',
  completes: 'path',
} as const;

const NEWLINE_IS_STORED =
  "the value ends with a line break, which is stored as part of it. To store it without: printf '%s' VALUE, or … | tr -d '\\n'.";

const put: Command = {
  name: 'put',
  summary: 'Stores a value: a new credential, or a new version of one',
  about: [
    'The value is typed, without being shown, or comes from standard input (-) or a file (@FILE), byte for byte. It is never an argument: a shell keeps those, and everybody on the machine sees them.',
    'Nothing is overwritten: the newest versions are kept, and get --version N reads an earlier one.',
  ],
  arguments: [
    PATH,
    {
      name: 'FROM',
      help: '- for standard input, @FILE for a file; left out, it is asked for',
      count: 'optional',
      completes: 'file',
    },
  ],
  flags: [
    { name: 'type', value: 'TYPE', help: 'such as api_key, token, password, certificate, ssh_key (default generic)' },
    { name: 'description', value: 'TEXT', help: 'for people and agents who look for it' },
    { name: 'if-new', value: null, help: 'refuses where the path exists' },
  ],
  examples: [
    { line: 'leasehold put prod/db/password', does: 'asks for the value' },
    {
      line: 'openssl rand -hex 32 | tr -d "\\n" | leasehold put prod/session-key -',
      does: 'stores what a program makes',
    },
    { line: 'leasehold put prod/tls/key @server.key --type certificate', does: 'stores a file' },
  ],
  takesValue: true,
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { terminal, signal } = invocation;
    const path = parsePath(invocation.argument('PATH'), 'PATH');
    const from = parseValueSource(invocation.optional('FROM'));
    const type = readFlag(invocation, 'type', parseCredentialType);
    const description = invocation.flag('description');
    const vault = invocation.connect();
    const value = await readValue({ terminal, signal }, from);
    if (from.kind !== 'typed' && endsLine(value)) printNotice(terminal, `WARNING  ${NEWLINE_IS_STORED}`);
    const request = {
      path,
      value,
      ...(type === null ? {} : { type }),
      ...(description === null ? {} : { description }),
    };
    const storing = vault.credentials.store(request, { onlyIfNew: invocation.isOn('if-new'), signal });
    const stored = await withDenialHint(invocation, { action: 'store', path }, storing);
    // WHY without the time: it is that of the first version.
    await invocation.output.record({ ...stored }, ['path', 'type', 'version']);
    return EXIT.OK;
  },
};

const list: Command = {
  name: 'list',
  summary: 'Lists credentials, without values',
  about: ['An agent sees the paths that it has a list grant on.'],
  arguments: [{ name: 'PREFIX', help: 'only paths that begin with it', count: 'optional', completes: 'path' }],
  flags: [{ name: 'type', value: 'TYPE', help: 'only of this type' }],
  examples: [{ line: 'leasehold list prod/ -o json', does: 'everything below prod/, for a program' }],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { signal } = invocation;
    const [prefix, type] = [invocation.optional('PREFIX') ?? '', readFlag(invocation, 'type', parseCredentialType)];
    const vault = invocation.connect();
    const all = await Array.fromAsync(vault.credentials.listAll(type === null ? {} : { type }, { signal }));
    const found = all.filter(({ path }) => path.startsWith(prefix));
    const nothing =
      prefix === '' && type === null
        ? 'There is no credential, as far as you may see. leasehold put PATH stores one.'
        : 'There is no such credential, as far as you may see. leasehold list shows all.';
    await invocation.output.records(found, ['path', 'type', 'description', 'updated_at', 'access_count'], nothing);
    return EXIT.OK;
  },
};

const history: Command = {
  name: 'history',
  summary: 'Shows the versions of a credential that are kept, without values',
  arguments: [PATH],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const path = parsePath(invocation.argument('PATH'), 'PATH');
    const vault = invocation.connect();
    const reading = vault.credentials.readMetadata(path, { signal: invocation.signal });
    const { versions } = await withDenialHint(invocation, { action: 'list', path }, reading);
    await invocation.output.records(versions, ['version', 'created_at'], 'No version is kept.');
    return EXIT.OK;
  },
};

export const CREDENTIAL_COMMANDS: readonly Command[] = [put, list, history, remove];
