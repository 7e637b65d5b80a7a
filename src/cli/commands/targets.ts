/** The commands `target show` and `target delete`. */
import { parsePath } from '../../core/path.ts';
import { type Command, defineCommand } from '../command.ts';
import { withDenialHint } from '../explain-denial.ts';
import { CONFIRMATION_FLAGS } from '../flags.ts';
import { pluralize } from '../output/cells.ts';
import { printTargets } from '../output/targets.ts';
import { confirmDestructive } from '../prompt.ts';
import { readTargets } from '../target-reader.ts';
import { printNotice } from '../terminal.ts';
import { put } from './target-put.ts';

const PATH = { name: 'PATH', help: 'path of a credential', count: 'one' } as const;

const show = defineCommand({
  name: 'target show',
  arguments: [PATH],
  async run(invocation, _flags, given) {
    await printTargets(invocation.output, await readTargets(invocation, parsePath(given, 'PATH')));
  },
});

const remove = defineCommand({
  name: 'target delete',
  about: ['Ends its use leases and cuts running uses. Its value and its other leases stay.'],
  arguments: [PATH],
  flags: CONFIRMATION_FLAGS,
  printsNoRecords: true,
  async run(invocation, flags, given) {
    const { terminal, signal } = invocation;
    const path = parsePath(given, 'PATH');
    const vault = invocation.connect();
    const describe = async (): Promise<string> => {
      const { targets } = await readTargets(invocation, path);
      return `${path}: ${pluralize(targets.length, 'target')} will be deleted, and running uses cut.`;
    };
    if (!(await confirmDestructive(invocation, flags, describe, 'Delete?'))) return;
    await withDenialHint(invocation, { action: 'store', path }, vault.targets.delete(path, { signal }));
    printNotice(terminal, `Deleted the targets of ${path}.`);
  },
});

export const TARGET_COMMANDS: readonly Command[] = [put, show, remove];
