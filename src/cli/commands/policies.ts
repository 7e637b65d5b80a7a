/** Commands on policies one by one; those that ask them, that put one and that take whole folders have files of their own. */
import { LeaseholdError } from '../../client/errors.ts';
import { parsePolicyName } from '../../core/names.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../errors.ts';
import { YES } from '../flags.ts';
import { LOSS_COLUMNS, lossesOf, lossLines, namedAgents } from '../policy/deletion-impact.ts';
import { toPolicy } from '../policy/fields.ts';
import { confirm } from '../prompt.ts';
import { printNotice } from '../terminal.ts';
import { apply } from './policy-apply.ts';
import { explain, test } from './policy-explain-test.ts';
import { put } from './policy-put.ts';

const COLUMNS = ['name', 'principal', 'actions', 'resources', 'max_ttl'];
const NAME = { name: 'NAME', help: 'of the policy', count: 'one', completes: 'policy' } as const;

const list: Command = {
  name: 'policy list',
  summary: 'Lists policies',
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const vault = invocation.connect();
    const policies = await Array.fromAsync(vault.policies.listAll(invocation));
    const nothing = 'There is no policy, so no agent may do anything. leasehold policy put NAME creates one.';
    await invocation.output.records(policies, COLUMNS, nothing);
    return EXIT.OK;
  },
};

const show: Command = {
  name: 'policy show',
  summary: 'Shows a policy',
  about: ['What it prints as JSON or YAML can be a file for policy put and policy apply.'],
  arguments: [NAME],
  examples: [
    { line: 'leasehold policy show ci -o yaml > policies/ci.yaml', does: 'the beginning of policies as files' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const name = parsePolicyName(invocation.argument('NAME'), 'NAME');
    const vault = invocation.connect();
    await invocation.output.record(await vault.policies.read(name, invocation));
    return EXIT.OK;
  },
};

const remove: Command = {
  name: 'policy delete',
  summary: 'Deletes a policy: from then on it grants nothing, on any node',
  about: [
    'It says first what nobody else grants, and asks. Where another policy grants the same, that one decides from then on, maybe for longer leases.',
    'Leases that were given stay until they end, but are not renewed; leasehold lease revoke ends them at once.',
  ],
  arguments: [NAME],
  flags: [YES, { name: 'dry-run', value: null, help: 'only says what would be lost' }],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { terminal, signal, output } = invocation;
    const name = parsePolicyName(invocation.argument('NAME'), 'NAME');
    const isDry = invocation.isOn('dry-run');
    const vault = invocation.connect();
    if (isDry || !invocation.isOn('yes')) {
      const policies = (await Array.fromAsync(vault.policies.listAll({ signal }))).map(toPolicy);
      const policy = policies.find((each) => each.name === name);
      if (policy === undefined) throw new LeaseholdError('NOT_FOUND', 'The policy does not exist.');
      const agents = namedAgents(policy, await Array.fromAsync(vault.agents.listAll({ signal })));
      const losses = lossesOf(
        policy,
        policies.filter((each) => each !== policy),
      );
      if (isDry && !output.isForPeople)
        await output.records(
          losses.map((loss) => ({ ...loss })),
          LOSS_COLUMNS,
          null,
        );
      else
        for (const line of lossLines(policy, losses, agents)) isDry ? output.text(line) : printNotice(terminal, line);
      if (isDry || !(await confirm({ terminal, signal }, `Delete ${name}?`))) {
        printNotice(terminal, 'Nothing was done.');
        return isDry ? EXIT.OK : EXIT.NEGATIVE;
      }
    }
    await vault.policies.delete(name, { signal });
    printNotice(terminal, `Deleted ${name}.`);
    return EXIT.OK;
  },
};

export const POLICY_COMMANDS: readonly Command[] = [list, show, put, remove, explain, test, apply];
