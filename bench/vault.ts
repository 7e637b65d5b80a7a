// A vault of known size and the service over it.

import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '../test/kit/client.ts';
import { temporaryDirectory } from '../test/kit/directory.ts';
import { fillSqlite, type Sizes } from './fixtures.ts';
import { type ServiceProgram, startService } from './program.ts';
import type { Stage, Target } from './types.ts';

/** The size that every other is compared with. */
export const SMALL: Sizes = { credentials: 1000, policies: 10, agents: 64, entries: 10_000 };

export interface BenchVault {
  readonly service: ServiceProgram;
  readonly target: Target;
  /** Size of its file before the service started. */
  readonly filledBytes: number;
}

/** A filled vault without a service. Returns its data directory. */
export async function createVault({ scope, say }: Stage, sizes: Sizes): Promise<string> {
  const dataDir = join(temporaryDirectory(scope), 'data');
  // The first start creates the vault.
  await (await startService(scope, dataDir)).stop();
  say(`Filling a vault: ${sizes.credentials} credentials, ${sizes.entries} entries`);
  await fillSqlite(dataDir, sizes);
  return dataDir;
}

export async function openVault(
  { scope }: Stage,
  dataDir: string,
  { credentials, agents }: Sizes,
): Promise<BenchVault> {
  const filledBytes = bytesOnDisk(dataDir);
  const service = await startService(scope, dataDir);
  return { service, target: { address: service.address, credentials, agents }, filledBytes };
}

export async function startVault(stage: Stage, sizes: Sizes): Promise<BenchVault> {
  return openVault(stage, await createVault(stage, sizes), sizes);
}

/** Stops the service and deletes the vault: large ones would fill a disk before the run ends. */
export async function removeVault({ service }: BenchVault): Promise<void> {
  await service.stop();
  rmSync(service.dataDir, { recursive: true, force: true });
}

/** Size of a vault that is closed: then everything is in one file. */
export function bytesOnDisk(dataDir: string): number {
  return statSync(join(dataDir, 'leasehold.db')).size;
}

export async function countEntries({ service }: BenchVault): Promise<number> {
  const { body } = await createClient(service.address, service.adminToken).get('/api/v1/audit?limit=1');
  return body.meta.total;
}
