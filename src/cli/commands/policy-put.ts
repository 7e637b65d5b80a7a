/** `leasehold policy put`: creates a policy, or replaces one after confirmation. */
import { toPolicy, toReplacement } from '../../client/policy-drafts.ts';
import { APPROVAL_FIELDS } from '../../core/approval-rule.ts';
import { ACTIONS, LIMIT_FIELDS, type PolicyDraft } from '../../core/policy.ts';
import { type FlagValues, list, parseDuration, text } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { CONFIRMATION_FLAGS, defineCommand, type Invocation } from '../command.ts';
import { nullIfMissing } from '../errors.ts';
import { readFields } from '../policy/fields.ts';
import { problemsError } from '../policy/file-format.ts';
import { makePlan, planRecord, stepLines } from '../policy/plan.ts';
import { readPolicyFile } from '../policy/policy-files.ts';
import { requireConfirmation } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const COLUMNS = ['name', 'principal', 'actions', 'resources', 'max_ttl'];

const FLAGS = {
  principal: text('agent:NAME', 'whom it applies to: agent:NAME, agent:PREFIX*, agent:*, or operator:NAME and so on'),
  resource: list('PATTERN', 'paths it grants; separate several with commas'),
  action: list(ACTIONS.join('|'), 'actions it grants; separate several with commas'),
  'max-ttl': text('DURATION', 'maximum lease duration, such as 15m, or in seconds (default 300)'),
  'uses-per-hour': text('NUMBER', 'maximum number of uses of each agent in an hour'),
  'bytes-per-hour': text('NUMBER', 'maximum number of bytes that each agent may send and receive in an hour'),
  concurrent: text('NUMBER', 'maximum number of uses of each agent at the same time'),
  approval: text('use|retrieve', 'the action that an operator must approve'),
  'approval-each': text('EXTENT', 'what one approval covers: request, endpoint or host'),
  'approval-scope': text('SCOPE', "how long an approval counts: once, session, '5 uses' or '3600 seconds'"),
  'approval-quorum': text('NUMBER', 'how many operators must approve (default 1)'),
  'approval-timeout': text('DURATION', 'how long a request waits for an answer, such as 10m (default 5m)'),
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
    const isSure = flags.yes;
    const draft = await readDraft(invocation, flags, name);
    const { policies } = invocation.connect();
    const present = await nullIfMissing(policies.read(name, { signal }));
    const plan = makePlan([draft], present === null ? [] : [toPolicy(present)], false);
    const [step] = plan.steps;
    if (flags['dry-run']) {
      if (!output.isForPeople) await output.record(planRecord(plan, false));
      else output.text(step === undefined ? `Policy ${name} is unchanged.` : stepLines(step).join('\n'));
      return printNotice(terminal, 'Nothing was done.');
    }
    if (present !== null && step === undefined) {
      await output.record(present, COLUMNS);
      return printNotice(terminal, `Policy ${name} is unchanged.`);
    }
    if (step?.change === 'replace') {
      for (const line of stepLines(step)) printNotice(terminal, line);
      if (!isSure) await requireConfirmation(invocation, `Replace policy ${name}?`);
    }
    const body = toReplacement(draft);
    // `create` fails if another caller created the policy meanwhile, so it is never replaced without confirmation.
    const isNew = present === null && !isSure;
    const written = await (isNew
      ? policies.create({ name, ...body }, { signal })
      : policies.put(name, body, { signal }));
    await output.record(written, COLUMNS);
    printNotice(terminal, `${present === null ? 'Created' : 'Replaced'} policy ${name}.`);
    const { actions } = draft;
    if (actions.includes('use') && actions.includes('store') && !actions.includes('retrieve')) {
      printNotice(terminal, STORE_AND_USE);
    }
  },
});

const STORE_AND_USE =
  'Note: store and use together amount to retrieve. The agent may write the targets, and send the value to its own host.';

const LIMIT_FLAGS = {
  uses_per_hour: 'uses-per-hour',
  bytes_per_hour: 'bytes-per-hour',
  concurrent: 'concurrent',
} as const;

const APPROVAL_FLAGS = {
  for: 'approval',
  each: 'approval-each',
  scope: 'approval-scope',
  quorum: 'approval-quorum',
  timeout: 'approval-timeout',
} as const;

const flagsOfFields = (prefix: string, flags: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(flags).map(([field, flag]) => [prefix + field, `--${flag}`]);

/** The flags by the fields that messages name. */
const FLAG_OF: ReadonlyMap<string, string> = new Map([
  ...flagsOfFields('', {
    principal: 'principal',
    resources: 'resource',
    actions: 'action',
    max_ttl: 'max-ttl',
    limits: 'uses-per-hour',
    approval: 'approval',
  }),
  ...flagsOfFields('limits.', LIMIT_FLAGS),
  ...flagsOfFields('approval.', APPROVAL_FLAGS),
]);

/** Neither paths nor actions contain commas. */
const listOf = (given: readonly string[]): string[] => given.flatMap((text) => text.split(','));

function limitsOf(flags: FlagValues<typeof FLAGS>): Readonly<Record<string, number>> | null {
  const given = LIMIT_FIELDS.flatMap((field) => {
    const text = flags[LIMIT_FLAGS[field]];
    // The rule for limits rejects NaN.
    return text === null ? [] : [[field, /^\d+$/.test(text) ? Number(text) : Number.NaN] as const];
  });
  return given.length === 0 ? null : Object.fromEntries(given);
}

function approvalOf(flags: FlagValues<typeof FLAGS>): Readonly<Record<string, unknown>> | null {
  const given = APPROVAL_FIELDS.flatMap((field): [string, string | number][] => {
    const text = flags[APPROVAL_FLAGS[field]];
    if (text === null) return [];
    if (field === 'timeout') return [[field, parseDuration(text) ?? Number.NaN]];
    return [[field, field === 'quorum' ? Number(text) : text]];
  });
  return given.length === 0 ? null : Object.fromEntries(given);
}

/** @throws UsageError */
async function readDraft(invocation: Invocation, flags: FlagValues<typeof FLAGS>, name: string): Promise<PolicyDraft> {
  const { file, principal, 'max-ttl': maxTtl } = flags;
  const limits = limitsOf(flags);
  const approval = approvalOf(flags);
  const [resources, actions] = [listOf(flags.resource), listOf(flags.action)];
  if (file !== null) {
    if (
      principal !== null ||
      maxTtl !== null ||
      limits !== null ||
      approval !== null ||
      resources.length + actions.length > 0
    )
      throw new UsageError('--file contains the whole policy and cannot be combined with the other flags');
    return readPolicyFile(invocation, file, name);
  }
  const fields = {
    ...(principal === null ? {} : { principal }),
    ...(resources.length === 0 ? {} : { resources }),
    ...(actions.length === 0 ? {} : { actions }),
    ...(maxTtl === null ? {} : { max_ttl: parseDuration(maxTtl) ?? maxTtl }),
    ...(limits === null ? {} : { limits }),
    ...(approval === null ? {} : { approval }),
  };
  const read = readFields(fields, name);
  if ('draft' in read) return read.draft;
  const problems = read.problems.map((problem) => {
    const [, field = '', rule = problem] = /^([\w.]+)(?:\[\d+\])?: (.*)$/s.exec(problem) ?? [];
    return { where: FLAG_OF.get(field) ?? 'NAME', what: rule };
  });
  throw problemsError(problems, 'leasehold policy put --help');
}
