/** The `lease` subcommands. */
import type { Lease, RevokeRequest } from '../../client/types.ts';
import { actorName } from '../../core/grammars.ts';
import { parsePath } from '../../core/path.ts';
import { parseField } from '../../engine/field.ts';
import { choice, type FlagValues, parsed, withoutNulls } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { ListedLease } from '../../vault/leases/lease.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, REQUESTS_IN_FLIGHT } from '../command.ts';
import { pluralize } from '../output/cells.ts';
import { confirmDestructive } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const parseLeaseId = (given: string) => parseField(ListedLease.fields.id, given, 'lease_id');

const STATUSES = ['active', 'expired', 'revoked'] as const;
const COLUMNS = ['lease_id', 'agent_name', 'path', 'status', 'expires_at', 'policy_name'];
const FILTERS = {
  'agent-name': parsed('NAME', 'only leases of this agent (--agent selects the identity of the CLI)', actorName.parse),
  path: parsed('PATH', 'only leases of this credential', parsePath),
};

function toFilter({ 'agent-name': agent, path }: FlagValues<typeof FILTERS>): RevokeRequest {
  return withoutNulls({ agent, path });
}

const list = defineCommand({
  name: 'lease list',
  about: ['Ended leases are listed for 7 days. An agent sees only its own leases.'],
  flags: { ...FILTERS, status: choice(STATUSES.join('|'), STATUSES, 'only leases with this status') },
  async run(invocation, { status, ...filters }) {
    const filter = { ...toFilter(filters), ...withoutNulls({ status }) };
    const leases = await Array.fromAsync(invocation.connect().leases.listAll(filter, invocation));
    const none = Object.keys(filter).length === 0 ? 'No leases' : 'No matching leases';
    await invocation.output.records(leases, COLUMNS, `${none} that you may list.`);
  },
});

const show = defineCommand({
  name: 'lease show',
  arguments: [{ name: 'LEASE_ID', help: 'id of the lease', count: 'one' }],
  async run(invocation, _flags, given) {
    const id = parseLeaseId(given);
    await invocation.output.record(await invocation.connect().leases.read(id, invocation));
  },
});

const renew = defineCommand({
  name: 'lease renew',
  about: ['The current policies decide whether the lease is renewed and for how long, starting now.'],
  arguments: [{ name: 'LEASE_ID', help: 'id of an active lease', count: 'one' }],
  async run(invocation, _flags, given) {
    const id = parseLeaseId(given);
    await invocation.output.record(await invocation.connect().leases.renew(id, invocation));
  },
});

const revoke = defineCommand({
  name: 'lease revoke',
  about: [
    'Select leases by id, or all active leases of an agent (--agent-name), of a credential (--path), or of both.',
    REQUESTS_IN_FLIGHT,
  ],
  arguments: [{ name: 'LEASE_ID', help: 'id of a lease', count: 'many' }],
  flags: { ...FILTERS, ...CONFIRMATION_FLAGS },
  examples: {
    'leasehold lease revoke --agent-name deploy-bot': 'revoke all leases of deploy-bot',
  },
  printsNoRecords: true,
  async run(invocation, flags, given) {
    const { terminal, signal } = invocation;
    const ids = given.map((id) => parseLeaseId(id));
    const filter = toFilter(flags);
    if ((Object.keys(filter).length === 0) === (ids.length === 0)) {
      throw new UsageError('give either LEASE_ID, or --agent-name or --path', 'leasehold lease revoke --help');
    }
    const vault = invocation.connect();
    if (ids.length > 0) {
      // ORDER: read all first, so that an unknown id fails before anything is revoked.
      const leases: Lease[] = [];
      for (const id of new Set(ids)) leases.push(await vault.leases.read(id, { signal }));
      const active = leases.filter(({ status }) => status === 'active');
      for (const { lease_id, status } of leases) {
        if (status !== 'active') printNotice(terminal, `${lease_id} has already ended (${status}).`);
      }
      if (flags['dry-run'])
        return printNotice(terminal, `${pluralize(active.length, 'lease')} would be revoked. Nothing was done.`);
      for (const { lease_id } of active) await vault.leases.revoke(lease_id, { signal });
      return printNotice(terminal, `Revoked ${active.length}.`);
    }
    const describe = async (): Promise<string> => {
      const { meta } = await vault.leases.list({ ...filter, status: 'active', limit: 1 }, { signal });
      return `${pluralize(meta.total, 'active lease')} will end.`;
    };
    if (!(await confirmDestructive(invocation, flags, describe, 'Revoke?'))) return;
    const { revoked } = await vault.leases.revokeAll(filter, { signal });
    printNotice(terminal, `Revoked ${revoked}.`);
  },
});

export const COMMANDS: readonly Command[] = [list, show, renew, revoke];
