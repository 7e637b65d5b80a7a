/** `leasehold inject`: replaces the references in a template with values. */
import { resolve } from 'node:path';
import { text } from '../../flags/flag.ts';
import { errnoSuffix, StartupError, UsageError } from '../../platform/errors.ts';
import { writeNewFile } from '../../platform/private-files.ts';
import { acquireLeases, releaseLeases } from '../../run/leases.ts';
import { fillTemplates, parseTemplate } from '../../run/templates.ts';
import { defineCommand, TTL } from '../command.ts';
import { leaseClientFor } from '../explain-denial.ts';
import { readTextInput } from '../input.ts';
import { printNotice } from '../terminal.ts';

const NAME = 'template';

export const inject = defineCommand({
  name: 'inject',
  about: [
    'Write {{leasehold://PATH | url}} to percent-encode a value for a URL, and {{leasehold://PATH?version=N}} for an earlier version. Other text stays unchanged.',
    'The result goes to a pipe, or with --out to a new file that only you can read. The leases are not revoked, because the result contains the values until you delete it. To give values to a program, prefer leasehold run.',
  ],
  arguments: [{ name: 'FILE', help: 'template file; - for standard input', count: 'one' }],
  flags: { out: text('FILE', 'write to this new file instead of standard output'), ttl: TTL },
  examples: [
    {
      line: 'leasehold --agent shop inject app.yaml.tpl --out app.yaml',
      does: 'write a configuration file with its secrets',
    },
  ],
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
