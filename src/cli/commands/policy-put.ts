/** `leasehold policy put`: creates a policy, or replaces one after confirmation. */

import { type FlagValues, text } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { Policy, type PolicyDraft } from '../../vault/policies/policy.ts';
import { CONFIRMATION_FLAGS, defineCommand, type Invocation } from '../command.ts';
import { policySubject, withConflictHint } from '../conflict.ts';
import { nullIfMissing } from '../errors.ts';
import { problemsError } from '../policy/file-format.ts';
import { makePlan, planRecord, stepLines } from '../policy/plan.ts';
import { readPolicyFile } from '../policy/policy-files.ts';
import { requireConfirmation } from '../prompt.ts';
import { readResource } from '../resource/fields.ts';
import { fieldsFrom, flagOf, flagsOf } from '../resource/flags.ts';
import { printNotice } from '../terminal.ts';

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
  examples: [
    {
      line: "leasehold policy put ci --principal 'agent:ci-*' --resource 'ci/*' --action retrieve,list --max-ttl 10m",
      does: 'let agents named ci-* list and retrieve everything below ci/, for ten minutes',
    },
    { line: 'leasehold policy put ci --file policies/ci.toml', does: 'create or replace a policy from a file' },
  ],
  async run(invocation, flags, name) {
    const { terminal, signal, output } = invocation;
    const draft = await readDraft(invocation, flags, name);
    const { policies } = invocation.connect();
    const tagged = await nullIfMissing(policies.readTagged(name, { signal }));
    const present = tagged?.data ?? null;
    const plan = makePlan([draft], present === null ? [] : [Policy.fromReply(present)], false);
    const [step] = plan.steps;
    if (flags['dry-run']) {
      if (!output.isForPeople) await output.record(planRecord(plan, false));
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
    const written = await withConflictHint(invocation, policySubject(name), writing);
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
