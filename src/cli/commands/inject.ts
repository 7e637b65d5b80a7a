/** `leasehold inject`: a text with references becomes a text with values, in a private file or a pipe. */

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { errnoSuffix } from '../../platform/errno.ts';
import { UsageError } from '../../platform/errors.ts';
import { type AcquiredLeases, acquireLeases, LeaseAcquisitionError, releaseLeases } from '../../run/leases.ts';
import { fillTemplates, type ParsedTemplate, parseTemplate } from '../../run/templates.ts';
import type { Command, Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { readDuration } from '../flag-values.ts';
import { readTextInput } from '../given-file.ts';
import { lenderOf, tellRefusals } from '../lease-env.ts';
import { printNotice } from '../terminal.ts';

const NAME = 'template';

export const inject: Command = {
  name: 'inject',
  summary: 'Fills a template: {{leasehold://PATH}} becomes the value of the credential',
  about: [
    'In a URL write {{leasehold://PATH | url}}, for an earlier version {{leasehold://PATH?version=N}}. Everything else stays as it is.',
    'The result goes into a pipe, or with --out into a new file that only you can read. It holds the values until you delete it, so their leases are left to end; a program gets values better with leasehold run.',
  ],
  arguments: [{ name: 'FILE', help: 'the template; - for standard input', count: 'one', completes: 'file' }],
  flags: [
    {
      name: 'out',
      value: 'FILE',
      help: 'into this file, which must not exist, instead of standard output',
      completes: 'file',
    },
    { name: 'ttl', value: 'DURATION', help: 'asks for shorter leases than the policies allow, such as 90s or 15m' },
  ],
  examples: [{ line: 'leasehold inject app.yaml.tpl --out app.yaml', does: 'a configuration file with its values' }],
  asksService: true,
  async run(invocation) {
    const { terminal, signal } = invocation;
    const [file, out] = [invocation.argument('FILE'), invocation.flag('out')];
    const ttlSeconds = readDuration(invocation, 'ttl');
    if (out === null && terminal.stdout.isTTY === true)
      throw new UsageError('the values would be shown on the terminal', 'Give --out FILE, or send them into a pipe.');
    const { template, wanted } = parse(await readTextInput(invocation, file), file);
    const lender = lenderOf(invocation, invocation.connect());
    let borrowed: AcquiredLeases;
    try {
      borrowed = await acquireLeases(lender, wanted, { ttlSeconds, signal });
    } catch (error) {
      throw error instanceof LeaseAcquisitionError ? tellRefusals(invocation, error.refused) : error;
    }
    const text = fillTemplates([template], borrowed.values).get(NAME)?.reveal() ?? '';
    if (out === null) terminal.stdout.write(text);
    else await write(invocation, resolve(terminal.folder, out), text, () => releaseLeases(lender, borrowed.leaseIds));
    return EXIT.OK;
  },
};

/** @throws UsageError */
function parse(text: string, file: string): ParsedTemplate {
  const parsed = parseTemplate(NAME, text, file);
  if (parsed !== null) return parsed;
  throw new UsageError(`${file}: has no reference {{leasehold://PATH}}`);
}

/** A file that cannot be written leaves no lease. @throws UsageError */
async function write(
  { terminal }: Invocation,
  path: string,
  text: string,
  undo: () => Promise<unknown>,
): Promise<void> {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    await undo();
    throw new UsageError(`${path} cannot be written${errnoSuffix(error)}`, 'Give a file that does not exist.');
  }
  printNotice(terminal, `Wrote ${path}. It holds the values: delete it when nothing needs it.`);
}
