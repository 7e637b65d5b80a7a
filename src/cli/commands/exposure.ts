/**
 * `leasehold exposure` lists which agents have seen values. `leasehold panic` ends all leases, sessions and requests.
 */
import type { CredentialExposure } from '../../client/types.ts';
import { actorName } from '../../core/grammars.ts';
import { parseAgentName } from '../../core/names.ts';
import { parsePath } from '../../core/path.ts';
import { parsed, withoutNulls } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, REQUESTS_IN_FLIGHT } from '../command.ts';
import { pluralize } from '../output/cells.ts';
import { confirmDestructive } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const EXPOSURE_COLUMNS = ['path', 'version', 'agent_name', 'exposure', 'times', 'last_at', 'live', 'deleted'];

function toRows({ path, versions }: CredentialExposure) {
  return versions.flatMap(({ version, deleted, seen_by, used_by }) => [
    ...seen_by.map((each) => ({ path, version, deleted, exposure: 'seen', ...each })),
    ...used_by.map((each) => ({ path, version, deleted, exposure: 'used', ...each })),
  ]);
}

const exposure = defineCommand({
  name: 'exposure',
  about: [
    'A version that was seen may be known to the agent for good; one that was only used is not.',
    'The record outlives leases, credentials and agents. Operators and the administrator may read it.',
  ],
  arguments: [{ name: 'PATH', help: 'path of a credential', count: 'optional' }],
  flags: {
    'agent-name': parsed(
      'NAME',
      'only versions that this agent has seen or used (--agent selects the identity of the CLI)',
      actorName.parse,
    ),
  },
  examples: {
    'leasehold exposure prod/db/password': 'list the agents that have seen or used it',
    'leasehold exposure --agent-name deploy-bot': 'list the versions that deploy-bot has seen or used',
  },
  async run(invocation, { 'agent-name': agent }, given) {
    const { output, signal } = invocation;
    if ((agent === null) === (given === null)) {
      throw new UsageError('give either PATH or --agent-name', 'leasehold exposure --help');
    }
    const path = given === null ? null : parsePath(given, 'PATH');
    const calls = invocation.connect().exposure;
    const found =
      path === null
        ? await Array.fromAsync(calls.listAll({ agent: agent ?? '' }, { signal }))
        : [await calls.read(path, { signal })];
    await output.records(found.flatMap(toRows), EXPOSURE_COLUMNS, 'Nothing was seen or used.');
  },
});

const panic = defineCommand({
  name: 'panic',
  about: [
    'Ends the leases, sessions and brokered requests of one agent (--agent-name), or all of them, including those of the administrator. Policies and registrations stay, so an agent whose key may be known should be deleted too.',
    REQUESTS_IN_FLIGHT,
    'Prints each version with the advice rotate if it was seen, replaced if it was seen and a newer one exists, and keep if it was only used. Withdraw a replaced value where it was issued, if it still works there.',
  ],
  flags: {
    'agent-name': parsed('NAME', 'only those of this agent (--agent selects the identity of the CLI)', parseAgentName),
    ...CONFIRMATION_FLAGS,
  },
  examples: {
    'leasehold panic --agent-name deploy-bot': 'end everything that deploy-bot holds',
  },
  async run(invocation, { 'agent-name': agent, ...confirmation }) {
    const { terminal, signal, output } = invocation;
    const body = withoutNulls({ agent });
    const vault = invocation.connect();
    const describe = async (): Promise<string> => {
      const { meta } = await vault.leases.list({ ...body, status: 'active', limit: 1 }, { signal });
      const whose = agent === null ? 'all agents' : agent;
      return `${pluralize(meta.total, 'active lease')} and every session and brokered request of ${whose} will end.`;
    };
    if (!(await confirmDestructive(invocation, confirmation, describe, 'End them?'))) return;
    const { leases, sessions, streams, rotate, used_only } = await vault.exposure.panic(body, { signal });
    const [revoked, ended] = [pluralize(leases, 'lease'), pluralize(sessions, 'session')];
    printNotice(terminal, `Revoked ${revoked}, ended ${ended}, aborted ${pluralize(streams, 'request')}.`);
    const rows = [
      ...rotate.map((each) => ({ ...each, advice: each.current ? 'rotate' : 'replaced' })),
      ...used_only.map((each) => ({ ...each, advice: 'keep' })),
    ];
    await output.records(rows, ['path', 'version', 'advice'], 'No version needs to be rotated.');
  },
});

export const COMMANDS: readonly Command[] = [exposure, panic];
