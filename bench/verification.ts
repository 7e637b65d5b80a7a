// Verification: how many entries a second GET /api/v1/audit/verify checks, over a log of real entries.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditEntry } from '../src/core/audit.ts';
import { headMac, linkEntry } from '../src/crypto/chain.ts';
import { newEntryId } from '../src/crypto/ids.ts';
import { deriveKeys, parseRootKey } from '../src/crypto/keys.ts';
import { SqliteStore } from '../src/store/sqlite/store.ts';
import { readMemory } from '../src/vault/memory.ts';
import { createClient } from '../test/kit/client.ts';
import type { Scope } from '../test/kit/folder.ts';
import { median } from './measuring.ts';
import { type ServiceProgram, startService } from './program.ts';
import type { Say } from './report.ts';

const ENTRIES_WANTED = 300_000;
/** Entries of the log that are written again, with ordinals, ids, times and links of their own, where there are too few. */
const TEMPLATES = 2000;

export interface VerificationFigures {
  readonly perSecond: number;
  readonly entries: number;
  /** Of them, written through the store's port rather than by retrievals. */
  readonly added: number;
}

export async function measureVerification(
  scope: Scope,
  say: Say,
  service: ServiceProgram,
  runs: number,
): Promise<VerificationFigures> {
  const { entries: written } = await verify(service);
  let running = service;
  if (written < ENTRIES_WANTED) {
    say(`Verification: the rounds wrote ${written} entries; adding to them …`);
    await service.stop();
    await addEntries(service.dataDir, ENTRIES_WANTED - written);
    running = await startService(scope, service.dataDir);
  }
  const rates: number[] = [];
  let entries = 0;
  for (let run = 1; run <= runs; run++) {
    const verified = await verify(running);
    entries = verified.entries;
    rates.push(entries / verified.seconds);
    say(`Verification: run ${run} of ${runs}: ${entries} entries in ${verified.seconds.toFixed(2)} s`);
  }
  return { perSecond: median(rates), entries, added: Math.max(0, entries - written) };
}

async function verify({ address, adminToken }: ServiceProgram): Promise<{ entries: number; seconds: number }> {
  const admin = createClient(address, adminToken);
  const startedAt = performance.now();
  const { body, text } = await admin.get('/api/v1/audit/verify');
  const seconds = (performance.now() - startedAt) / 1000;
  if (body?.data?.valid !== true) throw new Error(`the chain does not verify: ${text}`);
  return { entries: body.data.entries, seconds };
}

async function addEntries(dataDir: string, count: number): Promise<void> {
  const rootKey = parseRootKey(readFileSync(join(dataDir, 'root.key'), 'latin1'));
  if (rootKey === null) throw new Error('the service wrote a root key that is none');
  const keys = deriveKeys(rootKey);
  const store = new SqliteStore(join(dataDir, 'leasehold.db'));
  let { tip } = await readMemory(store, keys);
  const templates = await store.readEntries(Math.max(1, tip.seq - TEMPLATES), tip.seq - 1, TEMPLATES);
  const end = tip.seq + count;
  while (tip.seq < end) {
    const timestamp = new Date().toISOString();
    const entries: AuditEntry[] = [];
    let { seq, hmac } = tip;
    for (const template of templates.slice(0, end - seq)) {
      seq += 1;
      const unlinked = { ...template, seq, id: newEntryId(), timestamp };
      hmac = linkEntry(keys.audit, hmac, unlinked);
      entries.push({ ...unlinked, hmac });
    }
    const head = { seq, hmac, epoch: tip.epoch, mac: headMac(keys.audit, seq, hmac) };
    const turn = await store.openTurn([], 0);
    await (await turn.commit({ entries, head, changes: [], counts: { added: new Map(), throughSeq: seq } })).durable;
    tip = head;
  }
  await store.close();
}
