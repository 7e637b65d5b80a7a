/** `leasehold policy apply`: makes the policies of a vault match a directory of files. */

import { toPolicy } from '../../client/policy-drafts.ts';
import { toggle } from '../../flags/flag.ts';
import { defineCommand } from '../command.ts';
import { CONFIRMATION_FLAGS } from '../flags.ts';
import { applyPlan } from '../policy/apply.ts';
import { makePlan, planLines, planRecord, type Step } from '../policy/plan.ts';
import { readPolicyDirectory } from '../policy/policy-files.ts';
import { requireConfirmation } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const DONE = { create: 'Created', replace: 'Replaced', delete: 'Deleted' } as const satisfies Record<
  Step['change'],
  string
>;

export const apply = defineCommand({
  name: 'policy apply',
  about: [
    'Each policy is a file NAME.toml, NAME.json or NAME.yaml with principal, resources, actions and optionally max_ttl and limits. All files are validated before anything is changed; an unknown field is an error. Hidden files, *.md and *.txt are ignored; any other file in the directory is an error, and so is a link that leaves it.',
    'Shows the plan and asks for confirmation. A replacement that grants more than before is marked. Policies without a file are kept, unless --prune is given.',
    'Changes that add access are made before those that remove it, so that nothing is granted in between that neither the old nor the new policies grant. If the command is interrupted, run it again to continue.',
  ],
  arguments: [{ name: 'DIR', help: 'directory of policy files', count: 'one' }],
  flags: { prune: toggle('delete policies without a file'), ...CONFIRMATION_FLAGS },
  examples: [
    { line: 'leasehold policy apply policies --dry-run', does: 'show what would change' },
    {
      line: 'leasehold policy apply policies --prune --yes',
      does: 'in a pipeline: make the vault match the files exactly',
    },
  ],
  async run(invocation, { prune, yes, 'dry-run': isDry }, directory) {
    const { terminal, signal, output } = invocation;
    const files = await readPolicyDirectory(directory, terminal.workingDirectory);
    const { policies } = invocation.connect();
    const present = (await Array.fromAsync(policies.listAll({ signal }))).map(toPolicy);
    const wanted = files.map(({ draft }) => draft);
    const plan = makePlan(wanted, present, prune);
    const lines = planLines(plan);
    if (isDry) {
      if (output.isForPeople) return output.text(lines.join('\n'));
      return output.record(planRecord(plan, false));
    }
    for (const line of lines) printNotice(terminal, line);
    if (plan.steps.length > 0) {
      const question = `Make ${plan.steps.length === 1 ? 'this change' : `these ${plan.steps.length} changes`}?`;
      if (!yes) await requireConfirmation(invocation, question);
      await applyPlan(plan, policies, {
        signal,
        done: ({ change, name }) => printNotice(terminal, `${DONE[change]} ${name}.`),
        stopped: (some, all) =>
          printNotice(
            terminal,
            `${some} of ${all} changes were confirmed. Run the same command again to make the rest.`,
          ),
      });
    }
    if (!output.isForPeople) await output.record(planRecord(plan, true));
  },
});
