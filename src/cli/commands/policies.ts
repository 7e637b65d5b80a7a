/** Commands on policies one by one; those that ask them and that take whole folders have files of their own. */
import { LeaseholdError } from '../../client/errors.ts';
import type { PolicyDraft } from '../../core/policy.ts';
import { confirm } from '../asking.ts';
import type { Command, Invocation } from '../command.ts';
import { EXIT, Mistake } from '../mistake.ts';
import { readFields, toPolicy, toReplacement } from '../policy/fields.ts';
import { readPolicyFile, readPolicyText } from '../policy/folder.ts';
import { readInput } from '../policy/input.ts';
import { lossesOf, namedAgents } from '../policy/losses.ts';
import { LOSS_COLUMNS, lossLines } from '../policy/losstext.ts';
import { refuseProblems } from '../policy/problems.ts';
import { say } from '../terminal.ts';
import { apply } from './policyapply.ts';
import { explain, test } from './policyquestions.ts';

const COLUMNS = ['name', 'principal', 'actions', 'resources', 'max_ttl'];
const NAME = { name: 'NAME', help: 'of the policy', count: 'one', completes: 'policy' } as const;
const ACTIONS = ['retrieve', 'list', 'store', 'delete'] as const;

const list: Command = {
  name: 'policy list',
  summary: 'Lists policies',
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const vault = await invocation.connect();
    await invocation.output.records(await Array.fromAsync(vault.policies.listAll(invocation)), COLUMNS);
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
    const vault = await invocation.connect();
    await invocation.output.record(await vault.policies.read(invocation.argument('NAME'), invocation));
    return EXIT.OK;
  },
};

const put: Command = {
  name: 'policy put',
  summary: 'Creates a policy, or takes the place of the one with that name',
  about: [
    'What no policy grants is denied. Of all policies that match, the one with the smallest --max-ttl decides.',
    'A resource is a path, PREFIX/* for everything below a prefix, or *. Quote it: shells read * as files.',
  ],
  arguments: [NAME],
  flags: [
    {
      name: 'principal',
      value: 'agent:NAME',
      help: 'whom it names; agent:ci-* for all that begin so, agent:* for all',
    },
    { name: 'resource', value: 'PATTERN', help: 'where', isRepeatable: true, completes: 'path' },
    { name: 'action', value: ACTIONS.join('|'), help: 'what', isRepeatable: true, completes: ACTIONS },
    { name: 'max-ttl', value: 'SECONDS', help: 'of its leases at most (default 300)' },
    { name: 'file', value: 'FILE', help: 'has all of it: TOML, JSON or YAML; - for standard input', completes: 'file' },
  ],
  examples: [
    {
      line: "leasehold policy put ci --principal 'agent:ci-*' --resource 'ci/*' --action retrieve --max-ttl 600",
      does: 'lets every agent whose name begins with ci- read what lies below ci/, for ten minutes',
    },
    { line: 'leasehold policy put ci --file policies/ci.toml', does: 'as the file says' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const name = invocation.argument('NAME');
    const draft = await readDraft(invocation, name);
    const vault = await invocation.connect();
    await invocation.output.record(await vault.policies.put(name, toReplacement(draft), invocation), COLUMNS);
    return EXIT.OK;
  },
};

const FLAG_OF: Readonly<Record<string, string>> = {
  principal: '--principal',
  resources: '--resource',
  actions: '--action',
  max_ttl: '--max-ttl',
};

/** @throws Mistake */
async function readDraft(invocation: Invocation, name: string): Promise<PolicyDraft> {
  const file = invocation.flag('file');
  const [principal, maxTtl] = [invocation.flag('principal'), invocation.flag('max-ttl')];
  const [resources, actions] = [invocation.flags('resource'), invocation.flags('action')];
  if (file !== null) {
    if (principal !== null || maxTtl !== null || resources.length + actions.length > 0)
      throw new Mistake('--file has all of the policy; give it, or the other flags');
    if (file === '-') return readPolicyText(await readInput(invocation.terminal, file), name);
    return readPolicyFile(file, name, invocation.terminal.folder);
  }
  const fields = {
    ...(principal === null ? {} : { principal }),
    ...(resources.length === 0 ? {} : { resources }),
    ...(actions.length === 0 ? {} : { actions }),
    ...(maxTtl === null ? {} : { max_ttl: /^\d+$/.test(maxTtl) ? Number(maxTtl) : maxTtl }),
  };
  const read = readFields(fields, name);
  if ('draft' in read) return read.draft;
  const problems = read.problems.map((problem) => {
    const [, field = '', rule = problem] = /^(\w+)(?:\[\d+\])?: (.*)$/s.exec(problem) ?? [];
    return { where: FLAG_OF[field] ?? 'NAME', what: rule };
  });
  refuseProblems(problems, 'leasehold policy put --help');
  throw new Error('a policy without a draft had no problem');
}

const remove: Command = {
  name: 'policy delete',
  summary: 'Deletes a policy: from then on it grants nothing, on any node',
  about: [
    'It says first what nobody else grants, and asks. Where another policy grants the same, that one decides from then on, maybe for longer leases.',
    'Leases that were given stay until they end, but are not renewed; leasehold lease revoke ends them at once.',
  ],
  arguments: [NAME],
  flags: [
    { name: 'yes', short: 'y', value: null, help: 'asks nothing' },
    { name: 'dry-run', value: null, help: 'only says what would be lost' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { terminal, signal, output } = invocation;
    const name = invocation.argument('NAME');
    const isDry = invocation.isOn('dry-run');
    const vault = await invocation.connect();
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
        );
      else for (const line of lossLines(policy, losses, agents)) isDry ? output.text(line) : say(terminal, line);
      if (isDry || !(await confirm({ terminal, signal }, `Delete ${name}?`))) {
        say(terminal, 'Nothing was done.');
        return EXIT.OK;
      }
    }
    await vault.policies.delete(name, { signal });
    say(terminal, `Deleted ${name}.`);
    return EXIT.OK;
  },
};

export const POLICY_COMMANDS: readonly Command[] = [list, show, put, remove, explain, test, apply];
