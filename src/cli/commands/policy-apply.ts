/** The command that brings a vault's policies to what files say. */

import type { Command } from '../command.ts';
import { EXIT } from '../errors.ts';
import { YES } from '../flags.ts';
import { applyPlan } from '../policy/apply.ts';
import { toPolicy } from '../policy/fields.ts';
import { makePlan, planLines, planRecord, type Step } from '../policy/plan.ts';
import { readPolicyFolder } from '../policy/policy-files.ts';
import { confirm } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const DONE = { create: 'Created', replace: 'Replaced', delete: 'Deleted' } as const satisfies Record<
  Step['change'],
  string
>;

export const apply: Command = {
  name: 'policy apply',
  summary: "Brings the vault's policies to what the files of a folder say",
  about: [
    'A policy is a file NAME.toml, NAME.json or NAME.yaml with principal, resources, actions and, maybe, max_ttl. All files are checked before anything is changed: an unknown field is a mistake. Hidden files, *.md and *.txt are passed over; anything else in the folder is a mistake, and so is a link that leads out of it.',
    'The plan is shown first, and asked about. A replacement that gives more than before is marked. Policies that no file has are left alone, unless --prune deletes them.',
    'What adds is done before what removes, so that in between nothing is granted that neither the old nor the new policies grant. If it is broken off, the same command goes on.',
  ],
  arguments: [{ name: 'DIR', help: 'of the files', count: 'one', completes: 'directory' }],
  flags: [
    { name: 'dry-run', value: null, help: 'only shows the plan' },
    { name: 'prune', value: null, help: 'deletes policies that no file has' },
    YES,
  ],
  examples: [
    { line: 'leasehold policy apply policies --dry-run', does: 'shows what would change' },
    { line: 'leasehold policy apply policies --prune --yes', does: 'from a pipeline: the files are all there is' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { terminal, signal, output } = invocation;
    const files = await readPolicyFolder(invocation.argument('DIR'), terminal.folder);
    const { policies } = invocation.connect();
    const present = (await Array.fromAsync(policies.listAll({ signal }))).map(toPolicy);
    const wanted = files.map(({ draft }) => draft);
    const plan = makePlan(wanted, present, invocation.isOn('prune'));
    const lines = planLines(plan);
    if (invocation.isOn('dry-run')) {
      if (output.isForPeople) output.text(lines.join('\n'));
      else await output.record(planRecord(plan, false));
      return EXIT.OK;
    }
    for (const line of lines) printNotice(terminal, line);
    if (plan.steps.length > 0) {
      const question = `Make ${plan.steps.length === 1 ? 'this change' : `these ${plan.steps.length} changes`}?`;
      if (!invocation.isOn('yes') && !(await confirm({ terminal, signal }, question))) {
        printNotice(terminal, 'Nothing was done.');
        return EXIT.NEGATIVE;
      }
      await applyPlan(plan, policies, {
        signal,
        done: ({ change, name }) => printNotice(terminal, `${DONE[change]} ${name}.`),
        stopped: (some, all) =>
          printNotice(
            terminal,
            `${some} of ${all} changes were made for certain. The same command shows and does the rest.`,
          ),
      });
    }
    if (!output.isForPeople) await output.record(planRecord(plan, true));
    return EXIT.OK;
  },
};
