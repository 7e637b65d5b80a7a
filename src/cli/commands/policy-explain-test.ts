/** The `policy explain` and `policy test` subcommands. */

import { text, toggle } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { ACTIONS } from '../../vault/policies/policy.ts';
import { defineCommand, type Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { readTextInput } from '../input.ts';
import { pluralize } from '../output/cells.ts';
import {
  consideredRows,
  EXPLANATION_COLUMNS,
  explainAccess,
  localSimulator,
  readQuestion,
  remedyLines,
  type Simulator,
  toSimulation,
  verdictLines,
} from '../policy/access-query.ts';
import { type Expectation, readExpectations, testExpectations } from '../policy/expectations.ts';
import { problemsError, readPolicyDirectory } from '../policy/policy-files.ts';
import { mayBeAdministrator } from '../settings/settings.ts';
import { printNotice } from '../terminal.ts';
import { readTargets } from './targets.ts';

export const explain = defineCommand({
  name: 'policy explain',
  about: [
    'Shows the policies considered, the first test that each failed (principal, action, then pattern), the deciding policy, the nearest pattern, and a command that would grant exactly this access. Nothing is retrieved or recorded.',
    'An agent can ask only about itself, and receives only the reason. The exit code is 0 for either decision; in scripts, use --field allowed or policy test.',
  ],
  arguments: [
    { name: 'AGENT', help: 'name of the agent; it need not be registered', count: 'one' },
    { name: 'ACTION', help: ACTIONS.join(', '), count: 'one' },
    { name: 'PATH', help: 'path of a credential; it need not exist', count: 'one' },
  ],
  flags: {
    all: toggle('also show policies that do not name the agent'),
    request: text(
      'METHOD URL',
      'with the action use: a request such as "GET /v1/models", on the first host, or with a URL',
    ),
  },
  examples: {
    'leasehold policy explain deploy-bot retrieve prod/db/password': 'explain a decision',
    "leasehold policy explain ci use openai/key --request 'GET https://api.openai.com/v1/models'":
      'also check the targets of the credential',
    'leasehold policy explain ci list prod/db --field allowed': 'print true or false, for a script',
  },
  async run(invocation, { all: showsAll, request }, agent, action, path) {
    const { signal, output } = invocation;
    const read = readQuestion(
      agent,
      action,
      path,
      action === 'use' ? await withOrigin(invocation, path, request) : request,
    );
    if ('problems' in read) throw problemsError(read.problems.map(toProblem), 'leasehold policy explain --help');
    const { policies } = invocation.connect();
    // WHY: an agent may not list policies, and the attempt would be recorded as a denial.
    const listed = mayBeAdministrator(invocation.settings.identity.value)
      ? await Array.fromAsync(policies.listAll({ signal }))
      : null;
    const simulation = await policies.simulate(toSimulation(read.question), { signal });
    const explanation = explainAccess(read.question, listed, simulation);
    if (!output.isTable) return output.record({ ...explanation });
    for (const line of verdictLines(explanation)) output.text(line);
    const rows = consideredRows(explanation.policies ?? [], explanation.action, showsAll);
    if (rows.length > 0) {
      output.text('');
      await output.records(rows, EXPLANATION_COLUMNS, null);
    }
    const remedy = remedyLines(explanation, showsAll);
    if (remedy.length > 0) output.text(['', ...remedy].join('\n'));
  },
});

const PATH_ALONE = /^\s*(\S+)\s+(\/\S*)\s*$/;

/** Completes a request that has only a path, with the origin of the credential's first target that has one host. */
async function withOrigin(invocation: Invocation, path: string, request: string | null): Promise<string | null> {
  const [, method, url] = PATH_ALONE.exec(request ?? '') ?? [];
  if (method === undefined || url === undefined) return request;
  const { targets } = (await readTargets(invocation, path)).data;
  const origin = targets.find((target) => !target.origin.includes('*'))?.origin;
  if (origin !== undefined) return `${method} ${origin}${url}`;
  throw new UsageError(`--request: the targets of ${path} have many hosts`, 'Give the whole URL, with its host.');
}

const toProblem = (problem: string) => {
  const [where = '', ...rule] = problem.split(': ');
  return { where, what: rule.join(': ') };
};

export const test = defineCommand({
  name: 'policy test',
  about: [
    'Each line is allow|deny AGENT ACTION PATH. With the action use, METHOD and URL of a request may follow. An allow can end with ttl SECONDS, the exact lease duration. Text after # is a comment. If an expectation fails, it is printed and the exit code is 3.',
    'With --policies DIR, the command tests policy files with the same decision function and needs no server, so a change can be tested before it is applied. Targets are not in policy files, so a line with a request needs a vault.',
  ],
  arguments: [{ name: 'FILE', help: 'file of expectations; - for standard input', count: 'one' }],
  flags: { policies: text('DIR', 'test the policy files in this directory instead of a vault') },
  examples: {
    'leasehold policy test expected.txt': 'test the policies of the vault',
    'leasehold policy test expected.txt --policies policies': 'test policy files, in CI',
  },
  async run(invocation, { policies: directory }, file) {
    const { terminal, output } = invocation;
    const label = file === '-' ? 'standard input' : file;
    const expectations = readExpectations(await readTextInput(invocation, file), label);
    const held = await testExpectations(expectations, await simulatorFor(invocation, directory, expectations, label));
    const failed = held.filter(({ holds }) => !holds);
    if (!output.isTable) await output.records(held.map(toRecord), [], null);
    else if (failed.length > 0)
      await output.records(failed.map(toRecord), ['line', 'expected', 'found', 'reason'], null);
    const all = pluralize(held.length, 'expectation');
    printNotice(
      terminal,
      failed.length === 0 ? `${label}: ${all}, all passed.` : `${label}: ${failed.length} of ${all} failed.`,
    );
    return failed.length === 0 ? EXIT.OK : EXIT.NEGATIVE;
  },
});

const toRecord = (held: object) => ({ ...held });

async function simulatorFor(
  invocation: Invocation,
  directory: string | null,
  expectations: readonly Expectation[],
  label: string,
): Promise<Simulator> {
  const { terminal, signal } = invocation;
  const withRequest = expectations.find(({ question }) => question.request !== null);
  if (directory !== null && withRequest !== undefined)
    throw new UsageError(
      `${label}:${withRequest.line}: a request can be tested only without --policies`,
      'Policy files contain no targets.',
    );
  if (directory !== null)
    return localSimulator((await readPolicyDirectory(terminal, directory)).map(({ draft }) => draft));
  const { policies } = invocation.connect();
  return (question) => policies.simulate(toSimulation(question), { signal });
}
