/** The commands `policy list`, `policy show` and `policy delete`. */

import { toPolicy } from '../../client/policy-drafts.ts';
import { parsePolicyName } from '../../core/names.ts';
import { type Command, defineCommand } from '../command.ts';
import { CONFIRMATION_FLAGS } from '../flags.ts';
import { makePlan, planRecord, stepLines } from '../policy/plan.ts';
import { confirmDestructive } from '../prompt.ts';
import { printNotice } from '../terminal.ts';
import { apply } from './policy-apply.ts';
import { explain, test } from './policy-explain-test.ts';
import { put } from './policy-put.ts';

const COLUMNS = ['name', 'principal', 'actions', 'resources', 'max_ttl'];
const LEASES_STAY = 'Existing leases stay valid until they expire; leasehold lease revoke ends them.';
const NAME = { name: 'NAME', help: 'name of the policy', count: 'one' } as const;

const list = defineCommand({
  name: 'policy list',
  async run(invocation) {
    const policies = await Array.fromAsync(invocation.connect().policies.listAll(invocation));
    const nothing = 'No policies, so agents have no access. Create one with: leasehold policy put NAME';
    await invocation.output.records(policies, COLUMNS, nothing);
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
    'Shows what the policy grants, and asks for confirmation. If another policy grants the same access, it decides from then on, possibly with longer leases.',
    'Existing leases stay valid until they expire, but cannot be renewed; leasehold lease revoke ends them immediately.',
  ],
  arguments: [NAME],
  flags: CONFIRMATION_FLAGS,
  async run(invocation, flags, given) {
    const { terminal, signal, output } = invocation;
    const name = parsePolicyName(given, 'NAME');
    const vault = invocation.connect();
    const describe = async (): Promise<string> => {
      const plan = makePlan([], [toPolicy(await vault.policies.read(name, { signal }))], true);
      if (output.isForPeople) output.text([...plan.steps.flatMap(stepLines), LEASES_STAY].join('\n'));
      else await output.record(planRecord(plan, false));
      return `Policy ${name} will be deleted.`;
    };
    if (!(await confirmDestructive(invocation, flags, describe, 'Delete it?'))) return;
    await vault.policies.delete(name, { signal });
    printNotice(terminal, `Deleted ${name}.`);
  },
});

export const POLICY_COMMANDS: readonly Command[] = [list, show, put, remove, explain, test, apply];
