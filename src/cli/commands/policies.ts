/** The subcommands of `policy`: `list`, `show`, `delete` and `apply` are defined here, the others are imported. */

import { parsePolicyName } from '../../core/names.ts';
import { entriesOf, isInRequests } from '../../engine/field.ts';
import { toggle } from '../../flags/flag.ts';
import { Policy } from '../../vault/policies/policy.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand } from '../command.ts';
import { policySubject, withConflictHint } from '../conflict.ts';
import { applyPlan, makePlan, planLines, planRecord, type Step, stepLines } from '../policy/plan.ts';
import { readPolicyDirectory } from '../policy/policy-files.ts';
import { confirmDestructive, requireConfirmation } from '../prompt.ts';
import { printNotice } from '../terminal.ts';
import { explain, test } from './policy-explain-test.ts';
import { put } from './policy-put.ts';

const DONE = { create: 'Created', replace: 'Replaced', delete: 'Deleted' } as const satisfies Record<
  Step['change'],
  string
>;

const apply = defineCommand({
  name: 'policy apply',
  about: [
    'Each policy is a file NAME.toml, NAME.json or NAME.yaml with principal, resources, actions and optionally other fields of a policy. All files are validated before anything is changed; an unknown field is an error. Hidden files, *.md and *.txt are ignored; any other file in the directory is an error, and so is a link that leaves it.',
    'Shows the plan and asks for confirmation. A replacement that grants more than before is marked. Policies without a file are kept, unless --prune is given.',
    'Changes that add access are made before those that remove it, so that nothing is granted in between that neither the previous nor the new policies grant. If the command is interrupted, run it again to continue.',
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
    const files = await readPolicyDirectory(terminal, directory);
    const { policies } = invocation.connect();
    const present = (await Array.fromAsync(policies.listAll({ signal }))).map((policy) => Policy.fromReply(policy));
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
        attempt: ({ name }, work) => withConflictHint(invocation, policySubject(name), work),
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

/** Returns the columns of the list: the fields that requests have, except optional ones that no policy has. */
function columnsFor(policies: readonly object[]): string[] {
  const fields = entriesOf(Policy.fields).filter(({ field }) => isInRequests(field));
  const shown = fields.filter(
    ({ wire, field }) => field.presence !== 'optional' || policies.some((policy) => Object.hasOwn(policy, wire)),
  );
  return shown.map(({ wire }) => wire);
}

const LEASES_STAY = 'Existing leases stay valid until they expire; leasehold lease revoke ends them.';
const NAME = { name: 'NAME', help: 'name of the policy', count: 'one' } as const;

const list = defineCommand({
  name: 'policy list',
  async run(invocation) {
    const policies = await Array.fromAsync(invocation.connect().policies.listAll(invocation));
    const nothing = 'No policies, so agents have no access. Create one with: leasehold policy put NAME';
    await invocation.output.records(policies, columnsFor(policies), nothing);
  },
});

const show = defineCommand({
  name: 'policy show',
  about: ['The JSON and YAML output can be used as a file for policy put and policy apply.'],
  arguments: [NAME],
  examples: [{ line: 'leasehold policy show ci -o yaml > policies/ci.yaml', does: 'save a policy as a file' }],
  async run(invocation, _flags, given) {
    const name = parsePolicyName(given, 'NAME');
    await invocation.output.record(await invocation.connect().policies.read(name, invocation));
  },
});

const remove = defineCommand({
  name: 'policy delete',
  about: [
    'Shows what the policy grants, and asks for confirmation. If another policy grants the same access, that one decides after the deletion, possibly with longer leases.',
    'Existing leases stay valid until they expire, but cannot be renewed; leasehold lease revoke ends them immediately.',
  ],
  arguments: [NAME],
  flags: CONFIRMATION_FLAGS,
  async run(invocation, flags, given) {
    const { terminal, signal, output } = invocation;
    const name = parsePolicyName(given, 'NAME');
    const vault = invocation.connect();
    const seen: { ifMatch?: string } = {};
    const describe = async (): Promise<string> => {
      const { data, tag } = await vault.policies.readTagged(name, { signal });
      seen.ifMatch = tag;
      const plan = makePlan([], [Policy.fromReply(data)], true);
      if (output.isForPeople) output.text([...plan.steps.flatMap(stepLines), LEASES_STAY].join('\n'));
      else await output.record(planRecord(plan, false));
      return `Policy ${name} will be deleted.`;
    };
    if (!(await confirmDestructive(invocation, flags, describe, 'Delete it?'))) return;
    await withConflictHint(invocation, policySubject(name), vault.policies.delete(name, { ...seen, signal }));
    printNotice(terminal, `Deleted ${name}.`);
  },
});

export const POLICY_COMMANDS: readonly Command[] = [list, show, put, remove, explain, test, apply];
