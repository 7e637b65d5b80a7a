/** A log of a thousand entries or more, of every kind that the crash test's load leaves, in a stopped vault. */
import assert from 'node:assert/strict';
import { createSecretKey, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import { Dice } from '../kit/dice.ts';
import { type Scope, temporaryDirectory, withScope } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { LoadedVault, targetOf } from './loaded-vault.ts';

export interface KnownLog {
  readonly dataDir: string;
  /** The lines in the order of the export. */
  readonly lines: readonly string[];
  readonly entries: readonly AuditEntry[];
  readonly auditKey: KeyObject;
  /** The audit key as the auditor gets it, and the export's header with the head record. */
  readonly auditKeyText: string;
  readonly head: string;
}

export const ENTRIES = 1000;

/** Builds the vault and loads it until its log has so many entries. */
export async function buildKnownLog(scope: Scope, entries: number, seed: number): Promise<KnownLog> {
  const dataDir = join(temporaryDirectory(scope), 'data');
  const vault = new LoadedVault(dataDir, new Dice(seed));
  await vault.prepare();
  return withScope(async (running) => {
    const service = await startTestService(running, [], dataDir);
    for (let count = 0; count < entries; ) {
      const end = performance.now() + 50;
      await vault.runLoad(service.address, service.adminToken, () => performance.now() > end);
      count = (await service.admin.get('/api/v1/audit?limit=1')).body.meta.total;
    }
    await service.stop();
    return { dataDir, ...(await readLog(running, dataDir)) };
  });
}

async function readLog(scope: Scope, dataDir: string): Promise<Omit<KnownLog, 'dataDir'>> {
  const service = await startTestService(scope, [], dataDir);
  const exported = await service.admin.get('/api/v1/audit/export');
  const head = exported.headers.get('leasehold-audit-head');
  assert.ok(head);
  const lines = exported.text.trimEnd().split('\n');
  const { auditKey: auditKeyText } = await targetOf(dataDir, service.address, service.adminToken);
  const auditKey = createSecretKey(Buffer.from(auditKeyText, 'base64'));
  await service.stop();
  return { lines, entries: lines.map((line) => JSON.parse(line)), auditKey, auditKeyText, head };
}
