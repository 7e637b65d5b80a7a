/** The `lease` commands. */

import type { Lease, RevokeRequest } from '../../client/types.ts';
import { parseActorName, parseLeaseId } from '../../core/names.ts';
import { parsePath } from '../../core/path.ts';
import { UsageError } from '../../platform/errors.ts';
import type { Command, Invocation } from '../command.ts';
import { confirmDestructive } from '../confirm.ts';
import { EXIT } from '../errors.ts';
import { readChoice, readFlag } from '../flag-values.ts';
import { DRY_RUN, YES } from '../flags.ts';
import { pluralize } from '../plural.ts';
import { printNotice } from '../terminal.ts';

const STATUSES = ['active', 'expired', 'revoked'] as const;
const COLUMNS = ['lease_id', 'agent_name', 'path', 'status', 'expires_at', 'policy_name'];
const HOLDER = {
  name: 'agent-name',
  value: 'NAME',
  help: 'only leases of this agent (--agent selects who you log in as)',
  completes: 'agent',
} as const;
const OF_PATH = { name: 'path', value: 'PATH', help: 'only leases of this credential', completes: 'path' } as const;

/** Reads --agent-name and --path. @throws ApiError */
function readFilter(invocation: Invocation): RevokeRequest {
  const agent = readFlag(invocation, 'agent-name', parseActorName);
  const path = readFlag(invocation, 'path', parsePath);
  return { ...(agent === null ? {} : { agent }), ...(path === null ? {} : { path }) };
}

const list: Command = {
  name: 'lease list',
  summary: 'List leases, newest first',
  about: ['Ended leases are listed for 7 days. An agent sees only its own leases.'],
  flags: [
    HOLDER,
    OF_PATH,
    { name: 'status', value: STATUSES.join('|'), help: 'only leases with this status', completes: STATUSES },
  ],
  callsService: true,
  printsRecords: true,
  async run(invocation) {
    const [holder, status] = [readFilter(invocation), readChoice(invocation, 'status', STATUSES)];
    const filter = { ...holder, ...(status === null ? {} : { status }) };
    const vault = invocation.connect();
    const leases = await Array.fromAsync(vault.leases.listAll(filter, invocation));
    const none = Object.keys(filter).length === 0 ? 'No leases' : 'No matching leases';
    await invocation.output.records(leases, COLUMNS, `${none} that you may list.`);
    return EXIT.OK;
  },
};

const show: Command = {
  name: 'lease show',
  summary: 'Show a lease',
  arguments: [{ name: 'LEASE_ID', help: 'id of the lease', count: 'one' }],
  callsService: true,
  printsRecords: true,
  async run(invocation) {
    const id = parseLeaseId(invocation.argument('LEASE_ID'));
    const vault = invocation.connect();
    await invocation.output.record(await vault.leases.read(id, invocation));
    return EXIT.OK;
  },
};

const renew: Command = {
  name: 'lease renew',
  summary: 'Renew an active lease',
  about: ['The current policies decide whether the lease is renewed and for how long, starting now.'],
  arguments: [{ name: 'LEASE_ID', help: 'id of an active lease', count: 'one' }],
  callsService: true,
  printsRecords: true,
  async run(invocation) {
    const id = parseLeaseId(invocation.argument('LEASE_ID'));
    const vault = invocation.connect();
    await invocation.output.record(await vault.leases.renew(id, invocation));
    return EXIT.OK;
  },
};

const revoke: Command = {
  name: 'lease revoke',
  summary: 'Revoke leases immediately, on every node',
  about: [
    'Select leases by id, or all active leases of an agent (--agent-name), of a credential (--path), or of both.',
  ],
  arguments: [{ name: 'LEASE_ID', help: 'id of a lease', count: 'many' }],
  flags: [HOLDER, OF_PATH, YES, DRY_RUN],
  examples: [{ line: 'leasehold lease revoke --agent-name deploy-bot', does: 'revoke all leases of deploy-bot' }],
  callsService: true,
  async run(invocation) {
    const { terminal, signal } = invocation;
    const ids = invocation.many('LEASE_ID').map(parseLeaseId);
    const filter = readFilter(invocation);
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
      if (invocation.isOn('dry-run')) {
        printNotice(terminal, `${pluralize(active.length, 'lease')} would be revoked. Nothing was done.`);
        return EXIT.OK;
      }
      for (const { lease_id } of active) await vault.leases.revoke(lease_id, { signal });
      printNotice(terminal, `Revoked ${active.length}.`);
      return EXIT.OK;
    }
    const describe = async (): Promise<string> => {
      const { meta } = await vault.leases.list({ ...filter, status: 'active', limit: 1 }, { signal });
      return `${pluralize(meta.total, 'active lease')} will end.`;
    };
    const ended = await confirmDestructive(invocation, describe, 'Revoke?');
    if (ended !== null) return ended;
    const { revoked } = await vault.leases.revokeAll(filter, { signal });
    printNotice(terminal, `Revoked ${revoked}.`);
    return EXIT.OK;
  },
};

export const LEASE_COMMANDS: readonly Command[] = [list, show, renew, revoke];
