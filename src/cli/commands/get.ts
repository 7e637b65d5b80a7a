/** `leasehold get`: a value, bare into a pipe, and not by accident onto a terminal. */

import type { Retrieved } from '../../client/leasehold.ts';
import { parsePath } from '../../core/path.ts';
import { UsageError } from '../../platform/errors.ts';
import type { Command, Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { withDenialHint } from '../explain-denial.ts';
import { readDuration, readWholeNumber } from '../flag-values.ts';
import { assertHarmless, toVariableName } from '../output/variables.ts';
import { confirm } from '../prompt.ts';
import { canAsk, printNotice } from '../terminal.ts';

const FIELDS: readonly string[] = ['path', 'value', 'lease_id', 'expires_at'];

export const get: Command = {
  name: 'get',
  summary: 'Retrieves a value, for as long as its lease lasts',
  about: [
    'Into a pipe or a file it prints the value and nothing else, byte for byte. On a terminal it asks first, unless --reveal is given. With -o or --field it prints the lease too.',
    'Each retrieval is a lease and an entry in the audit log. A program gets a value better with leasehold run, which gives the lease back.',
  ],
  arguments: [{ name: 'PATH', help: 'of the credential', count: 'one', completes: 'path' }],
  flags: [
    { name: 'reveal', value: null, help: 'shows the value on a terminal without asking' },
    { name: 'version', value: 'N', help: 'an earlier version' },
    { name: 'ttl', value: 'DURATION', help: 'a shorter lease than the policy allows, such as 90s or 15m' },
  ],
  examples: [
    { line: 'leasehold get prod/db/password | pbcopy', does: 'into the clipboard, past the screen' },
    { line: 'leasehold get prod/db/password --field lease_id', does: 'the lease alone' },
    { line: 'eval "$(leasehold get prod/db/password -o env)"', does: 'sets PROD_DB_PASSWORD in this shell' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { terminal, signal } = invocation;
    const path = parsePath(invocation.argument('PATH'), 'PATH');
    const version = readWholeNumber(invocation, 'version');
    const ttlSeconds = readDuration(invocation, 'ttl');
    const field = invocation.flag('field');
    // A retrieval leaves a lease and an entry: what can't be printed is not retrieved.
    if (field !== null && !FIELDS.includes(field)) {
      throw new UsageError(`--field: there is no such field; there are ${FIELDS.join(', ')}`);
    }
    if (invocation.flag('output') === 'env' && field === null) assertHarmless(toVariableName(path));
    const showsValue = field === null || field === 'value';
    const mayShow = !showsValue || terminal.stdout.isTTY !== true || invocation.isOn('reveal');
    if (!mayShow && !(await askBefore(invocation, path))) {
      printNotice(terminal, 'Nothing was retrieved.');
      return EXIT.NEGATIVE;
    }
    const vault = invocation.connect();
    const retrieving = vault.credentials.retrieve(path, {
      ...(version === null ? {} : { version }),
      ...(ttlSeconds === null ? {} : { ttlSeconds }),
      signal,
    });
    await print(invocation, await withDenialHint(invocation, { action: 'retrieve', path }, retrieving));
    return EXIT.OK;
  },
};

/** Whether it may be shown. @throws UsageError where nobody is there to say so */
async function askBefore({ terminal, signal }: Invocation, path: string): Promise<boolean> {
  if (!canAsk(terminal)) {
    throw new UsageError('the value would be shown on the terminal', 'Say --reveal, or send it into a pipe or a file.');
  }
  return confirm({ terminal, signal }, `The value of ${path} will stand on this terminal. Show it?`);
}

/** Only what was typed asks for more than the value: a file or a variable must not change what a script reads. */
async function print(invocation: Invocation, { value, ...lease }: Retrieved): Promise<void> {
  const { terminal, output } = invocation;
  const revealed = value.reveal();
  const record = { path: lease.path, value: revealed, lease_id: lease.lease_id, expires_at: lease.expires_at };
  const [format, field] = [invocation.flag('output'), invocation.flag('field')];
  if (field === null && format === 'env') {
    output.variable(assertHarmless(toVariableName(lease.path)), revealed);
    return;
  }
  if (format !== null || field !== null) {
    await output.record(record);
    return;
  }
  terminal.stdout.write(revealed);
  if (terminal.stdout.isTTY !== true) return;
  if (!revealed.endsWith('\n')) terminal.stdout.write('\n');
  printNotice(terminal, `Lease ${lease.lease_id} ends at ${lease.expires_at}.`);
}
