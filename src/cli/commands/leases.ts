/** Commands on leases. */

import type { Lease, RevokeRequest } from '../../client/types.ts';
import { parseActorName, parseLeaseId } from '../../core/names.ts';
import { parsePath } from '../../core/path.ts';
import { UsageError } from '../../platform/errors.ts';
import type { Command, Invocation } from '../command.ts';
import { confirmDestructive } from '../confirm.ts';
import { EXIT } from '../errors.ts';
import { readChoice, readFlag } from '../flag-values.ts';
import { YES } from '../flags.ts';
import { pluralize } from '../plural.ts';
import { printNotice } from '../terminal.ts';

const STATUSES = ['active', 'expired', 'revoked'] as const;
const COLUMNS = ['lease_id', 'agent_name', 'path', 'status', 'expires_at', 'policy_name'];
const HOLDER = {
  name: 'of',
  value: 'NAME',
  help: 'only those of this agent; --agent is who asks',
  completes: 'agent',
} as const;
const OF_PATH = { name: 'path', value: 'PATH', help: 'only those of this credential', completes: 'path' } as const;

/** Of an agent, of a credential, of both, or all. @throws Fault */
function readWhich(invocation: Invocation): RevokeRequest {
  const agent = readFlag(invocation, 'of', parseActorName);
  const path = readFlag(invocation, 'path', parsePath);
  return { ...(agent === null ? {} : { agent }), ...(path === null ? {} : { path }) };
}

const list: Command = {
  name: 'lease list',
  summary: 'Lists leases, newest first; ended ones for 7 days',
  about: ['An agent sees its own.'],
  flags: [HOLDER, OF_PATH, { name: 'status', value: STATUSES.join('|'), help: 'only these', completes: STATUSES }],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const [which, status] = [readWhich(invocation), readChoice(invocation, 'status', STATUSES)];
    const filter = { ...which, ...(status === null ? {} : { status }) };
    const vault = invocation.connect();
    const leases = await Array.fromAsync(vault.leases.listAll(filter, invocation));
    const none = Object.keys(filter).length === 0 ? 'There is no lease' : 'There is no such lease';
    await invocation.output.records(leases, COLUMNS, `${none}, as far as you may see.`);
    return EXIT.OK;
  },
};

const show: Command = {
  name: 'lease show',
  summary: 'Shows a lease',
  arguments: [{ name: 'LEASE_ID', help: 'of the lease', count: 'one' }],
  asksService: true,
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
  summary: 'Renews a lease: decided anew, from now, by the policies as they are now',
  arguments: [{ name: 'LEASE_ID', help: 'of a lease that has not ended', count: 'one' }],
  asksService: true,
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
  summary: 'Revokes leases: at once, on every node',
  about: ['Give leases by their ids, or all active ones of an agent, of a credential, or of both together.'],
  arguments: [{ name: 'LEASE_ID', help: 'of a lease', count: 'many' }],
  flags: [HOLDER, OF_PATH, YES, { name: 'dry-run', value: null, help: 'only says how many there are' }],
  examples: [{ line: 'leasehold lease revoke --of deploy-bot', does: 'everything that deploy-bot holds' }],
  asksService: true,
  async run(invocation) {
    const { terminal, signal } = invocation;
    const ids = invocation.many('LEASE_ID').map(parseLeaseId);
    const which = readWhich(invocation);
    if ((Object.keys(which).length === 0) === (ids.length === 0)) {
      throw new UsageError('give LEASE_ID, or --of and --path, and not both', 'leasehold lease revoke --help');
    }
    const vault = invocation.connect();
    if (ids.length > 0) {
      // An id that does not exist is told before anything is done.
      const leases: Lease[] = [];
      for (const id of new Set(ids)) leases.push(await vault.leases.read(id, { signal }));
      const active = leases.filter(({ status }) => status === 'active');
      for (const { lease_id, status } of leases) {
        if (status !== 'active') printNotice(terminal, `${lease_id} has ended already (${status}).`);
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
      const { meta } = await vault.leases.list({ ...which, status: 'active', limit: 1 }, { signal });
      return `${pluralize(meta.total, 'active lease')} will end.`;
    };
    const ended = await confirmDestructive(invocation, describe, 'Revoke?');
    if (ended !== null) return ended;
    const { revoked } = await vault.leases.revokeAll(which, { signal });
    printNotice(terminal, `Revoked ${revoked}.`);
    return EXIT.OK;
  },
};

export const LEASE_COMMANDS: readonly Command[] = [list, show, renew, revoke];
