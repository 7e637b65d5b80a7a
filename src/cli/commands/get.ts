/** `leasehold get`: writes a value to a pipe, or after confirmation to a terminal. */
import type { Retrieved } from '../../client/leasehold.ts';
import { parsePath } from '../../core/path.ts';
import { toggle, wholeNumber } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { defineCommand, type Invocation, TTL } from '../command.ts';
import { withDenialHint } from '../explain-denial.ts';
import { escapeText, type Format } from '../output/cells.ts';
import { assertNotLoaderVariable, toVariableName } from '../output/output.ts';
import { requireConfirmation } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const FIELDS: readonly string[] = ['path', 'value', 'lease_id', 'expires_at'];

export const get = defineCommand({
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
  examples: [
    { line: 'leasehold get prod/db/password | pbcopy', does: 'copy the value to the clipboard' },
    { line: 'leasehold get prod/db/password --field lease_id', does: 'print only the lease id' },
    { line: 'eval "$(leasehold get prod/db/password -o env)"', does: 'set PROD_DB_PASSWORD in this shell' },
  ],
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
    const retrieving = invocation.connect().credentials.retrieve(path, {
      ...(version === null ? {} : { version }),
      ...(ttlSeconds === null ? {} : { ttlSeconds }),
      signal,
    });
    await print(invocation, await withDenialHint(invocation, { action: 'retrieve', path }, retrieving));
  },
});

const ESCAPED =
  'WARNING  the value has characters that a terminal would interpret, and they are shown escaped. A pipe or a file receives the value byte for byte.';

/** Only the flag selects a format here: a settings file or a variable must not change what a script reads. */
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
