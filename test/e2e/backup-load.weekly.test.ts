// A backup of a large vault under load: no request fails, and the memory of the service does not grow with the vault.
// LEASEHOLD_TEST_CREDENTIALS sets its size; the figures are printed.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { fillStore } from '../../bench/fixtures.ts';
import { startGenerator } from '../../bench/generator.ts';
import { residentMiB } from '../../bench/measurement.ts';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { openStore, STORE } from '../kit/stores.ts';

const CREDENTIALS = Number(process.env['LEASEHOLD_TEST_CREDENTIALS'] ?? 20_000);
const SIZES = { credentials: CREDENTIALS, policies: 100, agents: 64, entries: CREDENTIALS };
const PER_SECOND = Number(process.env['LEASEHOLD_TEST_RATE'] ?? 200);
const LOAD = { kind: 'paced', connections: 32, perSecond: PER_SECOND } as const;
const BEFORE_SECONDS = 10;
/** Longer than the backup takes. */
const DURING_SECONDS = Math.ceil(20 + CREDENTIALS / 10_000);
const MAX_GROWTH_MIB = 160;

test(`a backup of ${CREDENTIALS} credentials under load`, { timeout: 1_800_000 }, async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  await (await startProcess(t, dataDir)).end('SIGTERM');
  await fillStore(await openStore(dataDir), join(dataDir, 'root.key'), SIZES);
  const service = await startProcess(t, dataDir);
  const target = { address: service.address, credentials: SIZES.credentials, agents: SIZES.agents };
  const generator = startGenerator(t);
  const before = await generator.run({ ...LOAD, target, seconds: BEFORE_SECONDS });
  const restMiB = residentMiB(service.pid);

  const during = generator.run({ ...LOAD, target, seconds: DURING_SECONDS });
  await sleep(1000);
  let maxMiB = restMiB;
  const sampling = setInterval(() => {
    maxMiB = Math.max(maxMiB, residentMiB(service.pid));
  }, 250);
  const recipient = await identityToRecipient(await generateX25519Identity());
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  const startedAt = performance.now();
  const { code, stdout, stderr } = await home.spawned([
    ...['backup', join(temporaryDirectory(t), 'vault.age')],
    ...['--recipient', recipient, '-o', 'json'],
  ]);
  const seconds = (performance.now() - startedAt) / 1000;
  clearInterval(sampling);
  assert.equal(code, 0, stderr);
  const told = JSON.parse(stdout);
  assert.equal(told.credentials, CREDENTIALS);
  // The generator fails the run at any response that is not 200.
  const { p50Ms, p99Ms, perSecond } = await during;
  t.diagnostic(
    `${STORE}: ${CREDENTIALS} credentials in ${seconds.toFixed(1)} s, ${told.size_bytes} bytes; retrievals ${Math.round(perSecond)}/s, ` +
      `p50 ${before.p50Ms.toFixed(1)} → ${p50Ms.toFixed(1)} ms, p99 ${before.p99Ms.toFixed(1)} → ${p99Ms.toFixed(1)} ms; ` +
      `memory ${Math.round(restMiB)} → ${Math.round(maxMiB)} MiB`,
  );
  assert.ok(maxMiB - restMiB < MAX_GROWTH_MIB, `the service grew from ${restMiB} to ${maxMiB} MiB`);
});
