/**
 * The nodes of the vault: this one with what it decided in the last hour, and on a shared database the others that are
 * connected to it.
 */

import type { MinuteCounts } from '../../core/measures.ts';
import { authorize, type Context } from '../../core/operation.ts';
import { readConnectedPrograms } from '../../store/vault-metadata.ts';
import type { Vault, VaultNode } from '../vault.ts';
import type { SeenNode } from './overview.ts';

/** The name under which a node connects to the database. At most 63 bytes, to which PostgreSQL cuts names. */
export function connectionName({ name, version, startedAt }: VaultNode): string {
  return `leasehold ${version} ${startedAt.toString(36)} ${name.replaceAll(/[^\x21-\x7e]/g, '?')}`.slice(0, 63);
}

/** This node first, then the others by name. */
export async function listNodes(vault: Vault, context: Context): Promise<SeenNode[]> {
  await vault.ledger.read(authorize(context, 'service.read'));
  const { node, store, clock, ledger } = vault;
  const seenAt = clock.now();
  const newestSeq = ledger.memory.lastSeenEntry?.seq ?? 0;
  const own: SeenNode = { ...node.self, status: node.status(), newestSeq, isSelf: true, seenAt };
  const ownName = connectionName(node.self);
  const programs = await store.run(readConnectedPrograms(store.dialect));
  const others = programs.flatMap((name) => {
    const other = name === ownName ? null : parseConnectionName(name);
    return other === null ? [] : [{ ...other, status: null, newestSeq: null, isSelf: false, seenAt }];
  });
  return [own, ...others.sort((a, b) => (a.name < b.name ? -1 : 1))];
}

/** The decisions of this node since its startup, for each minute of the last hour. */
export async function readActivity(vault: Vault, context: Context): Promise<readonly MinuteCounts[]> {
  await vault.ledger.read(authorize(context, 'service.read'));
  return vault.ledger.measures.lastHour.read(vault.clock.now());
}

/** Null for a name that no node has. */
function parseConnectionName(text: string): VaultNode | null {
  const [, version, startedAt, name] = /^leasehold (\S{1,32}) ([0-9a-z]{1,11}) (\S{1,63})$/.exec(text) ?? [];
  if (version === undefined || startedAt === undefined || name === undefined) return null;
  const at = Number.parseInt(startedAt, 36);
  return at > 8.64e15 ? null : { version, name, startedAt: at };
}
