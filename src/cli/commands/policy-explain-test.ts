/** Commands that ask policies: why a decision is as it is, and whether decisions are as they are expected. */
import { LeaseholdError } from '../../client/errors.ts';
import type { Policies } from '../../client/policies.ts';
import type { Policy } from '../../client/types.ts';
import { ACTIONS } from '../../core/policy.ts';
import type { Command, Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { readTextInput } from '../given-file.ts';
import { type Ask, localSimulator, readQuestion, toSimulation } from '../policy/access-query.ts';
import { holdExpectations, readExpectations } from '../policy/expectations.ts';
import {
  consideredRows,
  EXPLANATION_COLUMNS,
  explainAccess,
  remedyLines,
  verdictLines,
} from '../policy/explanation.ts';
import { readPolicyFolder } from '../policy/policy-files.ts';
import { throwIfProblems } from '../policy/problems.ts';
import { mayBeAdministrator } from '../settings/settings.ts';
import { printNotice } from '../terminal.ts';

export const explain: Command = {
  name: 'policy explain',
  summary: 'Says why an agent may do something or not, and what would grant it',
  about: [
    'Shows which policies were considered, the first test that each failed (principal, then action, then pattern), which of those that match decides, the nearest pattern, and the command that would grant just this. Nothing is accessed, and nothing recorded.',
    'An agent may ask for itself, and gets the reason alone. The exit code is 0 whatever the answer is: for scripts there are --field allowed and policy test.',
  ],
  arguments: [
    { name: 'AGENT', help: 'its name; it need not be registered', count: 'one', completes: 'agent' },
    { name: 'ACTION', help: ACTIONS.join(', '), count: 'one', completes: ACTIONS },
    { name: 'PATH', help: 'of a credential, whether it exists or not', count: 'one', completes: 'path' },
  ],
  flags: [{ name: 'all', value: null, help: 'shows policies that do not name the agent, too' }],
  examples: [
    { line: 'leasehold policy explain deploy-bot retrieve prod/db/password', does: 'the way to a grant' },
    { line: 'leasehold policy explain ci list prod/db --field allowed', does: 'true or false, for a script' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { signal, output } = invocation;
    const [agent, action, path] = ['AGENT', 'ACTION', 'PATH'].map((name) => invocation.argument(name));
    const read = readQuestion(agent ?? '', action ?? '', path ?? '');
    if ('problems' in read) throwIfProblems(read.problems.map(toProblem), 'leasehold policy explain --help');
    if (!('question' in read)) throw new Error('a question that breaks nothing was not read');
    const { policies } = invocation.connect();
    // WHY not just tried: an agent's try would stand in the audit log as a denial.
    const listed = mayBeAdministrator(invocation.settings.identity.value)
      ? await listWhereAllowed(policies, signal)
      : null;
    const simulation = await policies.simulate(toSimulation(read.question), { signal });
    const explanation = explainAccess(read.question, listed, simulation);
    if (!output.isForPeople) {
      await output.record({ ...explanation });
      return EXIT.OK;
    }
    const showsAll = invocation.isOn('all');
    for (const line of verdictLines(explanation)) output.text(line);
    const rows = consideredRows(explanation.policies ?? [], explanation.action, showsAll);
    if (rows.length > 0) {
      output.text('');
      await output.records(rows, EXPLANATION_COLUMNS, null);
    }
    const way = remedyLines(explanation, showsAll);
    if (way.length > 0) output.text(['', ...way].join('\n'));
    return EXIT.OK;
  },
};

const toProblem = (problem: string) => {
  const [where = '', ...rule] = problem.split(': ');
  return { where, what: rule.join(': ') };
};

async function listWhereAllowed(policies: Policies, signal: AbortSignal): Promise<Policy[] | null> {
  try {
    return await Array.fromAsync(policies.listAll({ signal }));
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === 'ACCESS_DENIED') return null;
    throw error;
  }
}

export const test: Command = {
  name: 'policy test',
  summary: 'Holds expectations in a file against what is decided',
  about: [
    'A row is allow|deny AGENT ACTION PATH, and behind allow maybe ttl SECONDS: just how long a lease may last. What follows a # is for people. Rows that do not hold are printed, and the exit code is 3.',
    '--policies DIR asks the policies in files instead of a vault, with the same function, so that a change can be tested before it is applied; no service is needed then.',
  ],
  arguments: [{ name: 'FILE', help: 'of expectations; - for standard input', count: 'one', completes: 'file' }],
  flags: [
    { name: 'policies', value: 'DIR', help: 'asks the policies in these files, and no vault', completes: 'directory' },
  ],
  examples: [
    { line: 'leasehold policy test expected.txt', does: 'asks the vault' },
    { line: 'leasehold policy test expected.txt --policies policies', does: 'asks the files, in CI' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { terminal, output } = invocation;
    const file = invocation.argument('FILE');
    const called = file === '-' ? 'standard input' : file;
    const expectations = readExpectations(await readTextInput(invocation, file), called);
    const held = await holdExpectations(expectations, await asker(invocation));
    const failed = held.filter(({ holds }) => !holds);
    if (!output.isForPeople) await output.records(held.map(toRecord), [], null);
    else if (failed.length > 0)
      await output.records(failed.map(toRecord), ['line', 'expected', 'found', 'reason'], null);
    const all = `${held.length} ${held.length === 1 ? 'expectation' : 'expectations'}`;
    printNotice(
      terminal,
      failed.length === 0 ? `${called}: ${all}, all hold.` : `${called}: ${failed.length} of ${all} failed.`,
    );
    return failed.length === 0 ? EXIT.OK : EXIT.NEGATIVE;
  },
};

const toRecord = (held: object) => ({ ...held });

async function asker(invocation: Invocation): Promise<Ask> {
  const folder = invocation.flag('policies');
  if (folder !== null)
    return localSimulator((await readPolicyFolder(folder, invocation.terminal.folder)).map(({ draft }) => draft));
  const { signal } = invocation;
  const { policies } = invocation.connect();
  return (question) => policies.simulate(toSimulation(question), { signal });
}
