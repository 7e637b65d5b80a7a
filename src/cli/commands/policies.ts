/** The commands `policy list`, `policy show` and `policy delete`. */
import { parsePolicyName } from '../../core/names.ts';
import { type Command, defineCommand } from '../command.ts';
import { CONFIRMATION_FLAGS } from '../flags.ts';
import { toPolicy } from '../policy/fields.ts';
import { makePlan, planRecord, stepLines } from '../policy/plan.ts';
import { requireConfirmation } from '../prompt.ts';
import { printNotice } from '../terminal.ts';
import { apply } from './policy-apply.ts';
import { explain, test } from './policy-explain-test.ts';
import { put } from './policy-put.ts';

const COLUMNS = ['name', 'principal', 'actions', 'resources', 'max_ttl'];
const LEASES_STAY = 'Existing leases stay valid until they expire; leasehold lease revoke ends them.';
const NAME = { name: 'NAME', help: 'name of the policy', count: 'one', completes: 'policy' } as const;

const list = defineCommand({
  name: 'policy list',
  summary: 'List policies',
  callsService: true,
  printsRecords: true,
  async run(invocation) {
    const vault = invocation.connect();
    const policies = await Array.fromAsync(vault.policies.listAll(invocation));
    const nothing = 'No policies, so agents have no access. Create one with: leasehold policy put NAME';
    await invocation.output.records(policies, COLUMNS, nothing);
  },
});

const show = defineCommand({
  name: 'policy show',
  summary: 'Show a policy',
  about: ['The JSON and YAML output can be used as a file for policy put and policy apply.'],
  arguments: [NAME],
  examples: [{ line: 'leasehold policy show ci -o yaml > policies/ci.yaml', does: 'save a policy as a file' }],
  callsService: true,
  printsRecords: true,
  async run(invocation, _flags, given) {
    const name = parsePolicyName(given, 'NAME');
    const vault = invocation.connect();
    await invocation.output.record(await vault.policies.read(name, invocation));
  },
});

const remove = defineCommand({
  name: 'policy delete',
  summary: 'Delete a policy, effective immediately on every node',
  about: [
    'Shows what the policy grants, and asks for confirmation. If another policy grants the same access, it decides from then on, possibly with longer leases.',
    'Existing leases stay valid until they expire, but cannot be renewed; leasehold lease revoke ends them immediately.',
  ],
  arguments: [NAME],
  flags: CONFIRMATION_FLAGS,
  callsService: true,
  printsRecords: true,
  async run(invocation, { yes, 'dry-run': isDry }, given) {
    const { terminal, signal, output } = invocation;
    const name = parsePolicyName(given, 'NAME');
    const vault = invocation.connect();
    if (isDry || !yes) {
      const plan = makePlan([], [toPolicy(await vault.policies.read(name, { signal }))], true);
      const lines = [...plan.steps.flatMap(stepLines), LEASES_STAY];
      if (isDry && !output.isForPeople) await output.record(planRecord(plan, false));
      else for (const line of lines) isDry ? output.text(line) : printNotice(terminal, line);
      if (isDry) return printNotice(terminal, 'Nothing was done.');
      await requireConfirmation(invocation, `Delete ${name}?`);
    }
    await vault.policies.delete(name, { signal });
    printNotice(terminal, `Deleted ${name}.`);
  },
});

export const POLICY_COMMANDS: readonly Command[] = [list, show, put, remove, explain, test, apply];
