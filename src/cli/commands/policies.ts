/** The subcommands of `policy` that list, show and change policies. */
import { policyName } from '../../core/grammars.ts';
import { entriesOf, isInRequests } from '../../engine/field.ts';
import { type FlagValues, text, toggle } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { Policy, type PolicyDraft } from '../../vault/policies/policy.ts';
import { withConflictHint } from '../call-hints.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, type Invocation } from '../command.ts';
import { nullIfMissing } from '../errors.ts';
import { problemsError, readPolicyDirectory, readPolicyFile } from '../policy/policy-files.ts';
import { applyPlan, makePlan, planLines, planRecord, type Step, stepLines } from '../policy/policy-plan.ts';
import { confirmDestructive, requireConfirmation } from '../prompt.ts';
import { fieldsFrom, flagOf, flagsOf, readResource } from '../resource-input.ts';
import { printNotice } from '../terminal.ts';
import { explain, test } from './policy-explain-test.ts';

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
  examples: {
    'leasehold policy apply policies --dry-run': 'show the changes',
    'leasehold policy apply policies --prune --yes': 'in a pipeline: make the vault match the files exactly',
  },
  async run(invocation, { prune, yes, 'dry-run': isDry }, directory) {
    const { terminal, signal, output } = invocation;
    const files = await readPolicyDirectory(terminal, directory);
    const { policies } = invocation.connect();
    const present = (await Array.fromAsync(policies.listAll({ signal }))).map((policy) => Policy.fromReply(policy));
    const wanted = files.map(({ draft }) => draft);
    const plan = makePlan(wanted, present, prune);
    const lines = planLines(plan);
    if (isDry) {
      if (output.isTable) return output.text(lines.join('\n'));
      return output.record(planRecord(plan, false));
    }
    for (const line of lines) printNotice(terminal, line);
    if (plan.steps.length > 0) {
      const question = `Make ${plan.steps.length === 1 ? 'this change' : `these ${plan.steps.length} changes`}?`;
      if (!yes) await requireConfirmation(invocation, question);
      await applyPlan(plan, policies, {
        signal,
        attempt: ({ name }, work) => withConflictHint(invocation, 'policy', name, work),
        done: ({ change, name }) => printNotice(terminal, `${DONE[change]} ${name}.`),
        stopped: (some, all) =>
          printNotice(
            terminal,
            `${some} of ${all} changes were confirmed. Run the same command again to make the rest.`,
          ),
      });
    }
    if (!output.isTable) await output.record(planRecord(plan, true));
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
  examples: {
    'leasehold policy show ci -o yaml > policies/ci.yaml': 'save a policy as a file',
  },
  async run(invocation, _flags, given) {
    const name = policyName.parse(given, 'NAME');
    await invocation.output.record(await invocation.connect().policies.read(name, invocation));
  },
});

const remove = defineCommand({
  name: 'policy delete',
  about: [
    'Shows the access that the policy grants, and asks for confirmation. If another policy grants the same access, that one decides after the deletion, possibly with longer leases.',
    'Existing leases stay valid until they expire, but cannot be renewed; leasehold lease revoke ends them immediately.',
  ],
  arguments: [NAME],
  flags: CONFIRMATION_FLAGS,
  async run(invocation, flags, given) {
    const { terminal, signal, output } = invocation;
    const name = policyName.parse(given, 'NAME');
    const vault = invocation.connect();
    const seen: { ifMatch?: string } = {};
    const describe = async (): Promise<string> => {
      const { data, tag } = await vault.policies.readTagged(name, { signal });
      seen.ifMatch = tag;
      const plan = makePlan([], [Policy.fromReply(data)], true);
      if (output.isTable) output.text([...plan.steps.flatMap(stepLines), LEASES_STAY].join('\n'));
      else await output.record(planRecord(plan, false));
      return `Policy ${name} will be deleted.`;
    };
    if (!(await confirmDestructive(invocation, flags, describe, 'Delete it?'))) return;
    await withConflictHint(invocation, 'policy', name, vault.policies.delete(name, { ...seen, signal }));
    printNotice(terminal, `Deleted ${name}.`);
  },
});

const FLAGS = {
  ...flagsOf(Policy),
  file: text('FILE', 'read the whole policy from this TOML, JSON or YAML file; - for standard input'),
  ...CONFIRMATION_FLAGS,
};

export const put = defineCommand({
  name: 'policy put',
  about: [
    'Access that no policy grants is denied. If several policies match, the one with the smallest --max-ttl decides.',
    'A resource is a path, PREFIX/* for everything below a prefix, or * for everything. Quote it, because shells expand *.',
    'Before it replaces a policy, the command shows the changes, marks those that grant more than before, and asks for confirmation.',
  ],
  arguments: [{ name: 'NAME', help: 'name of the policy', count: 'one' }],
  flags: FLAGS,
  examples: {
    "leasehold policy put ci --principal 'agent:ci-*' --resource 'ci/*' --action retrieve,list --max-ttl 10m":
      'let agents named ci-* list and retrieve everything below ci/, for ten minutes',
    'leasehold policy put ci --file policies/ci.toml': 'create or replace a policy from a file',
  },
  async run(invocation, flags, name) {
    const { terminal, signal, output } = invocation;
    const draft = await readDraft(invocation, flags, name);
    const { policies } = invocation.connect();
    const tagged = await nullIfMissing(policies.readTagged(name, { signal }));
    const present = tagged?.data ?? null;
    const plan = makePlan([draft], present === null ? [] : [Policy.fromReply(present)], false);
    const [step] = plan.steps;
    if (flags['dry-run']) {
      if (!output.isTable) await output.record(planRecord(plan, false));
      else output.text(step === undefined ? `Policy ${name} is unchanged.` : stepLines(step).join('\n'));
      return printNotice(terminal, 'Nothing was done.');
    }
    if (present !== null && step === undefined) {
      await output.record(present);
      return printNotice(terminal, `Policy ${name} is unchanged.`);
    }
    if (step?.change === 'replace') {
      for (const line of stepLines(step)) printNotice(terminal, line);
      if (!flags.yes) await requireConfirmation(invocation, `Replace policy ${name}?`);
    }
    const body = Policy.toInput(draft);
    const seen = tagged === null ? { onlyIfNew: true } : { ifMatch: tagged.tag };
    const writing = policies.put(name, body, { ...seen, signal });
    const written = await withConflictHint(invocation, 'policy', name, writing);
    await output.record(written);
    printNotice(terminal, `${present === null ? 'Created' : 'Replaced'} policy ${name}.`);
    const { actions } = draft;
    if (actions.includes('use') && actions.includes('store') && !actions.includes('retrieve')) {
      printNotice(terminal, STORE_AND_USE);
    }
  },
});

const STORE_AND_USE =
  'Note: store and use together amount to retrieve. The agent may write the targets, and send the value to its own host.';

/** @throws UsageError */
async function readDraft(invocation: Invocation, flags: FlagValues<typeof FLAGS>, name: string): Promise<PolicyDraft> {
  const { file, yes: _yes, 'dry-run': _isDry, ...given } = flags;
  const fields = fieldsFrom(Policy, given);
  if (file !== null) {
    if (Object.keys(fields).length > 0) {
      throw new UsageError('--file contains the whole policy and cannot be combined with the other flags');
    }
    return readPolicyFile(invocation, file, name);
  }
  const read = readResource(Policy, fields, name);
  if ('draft' in read) return read.draft;
  const problems = read.problems.map((problem) => {
    const [, field = '', rule = problem] = /^([\w.]+)(?:\[\d+\])?: (.*)$/s.exec(problem) ?? [];
    return { where: flagOf(Policy, field) ?? 'NAME', what: rule };
  });
  throw problemsError(problems, 'leasehold policy put --help');
}

export const COMMANDS: readonly Command[] = [list, show, put, remove, explain, test, apply];
