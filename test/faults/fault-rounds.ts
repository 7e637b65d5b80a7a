/**
 * Rounds with a fault of the disk: the service starts, works and stops while chosen calls fail. Then the end of the
 * process is checked, and the vault is started without the fault and compared with the responses.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../kit/client.ts';
import type { Scope } from '../kit/directory.ts';
import { readToken } from '../kit/process.ts';
import { until } from '../kit/processes.ts';
import type { LoadedVault } from './loaded-vault.ts';
import { type CallFault, type CallReport, launchSupervised, type Supervised } from './supervised.ts';

/** `first start`: of an empty directory, without load. `outage`: the fault lasts a while under load and then ends. */
export const PHASES = ['first start', 'start', 'load', 'stop', 'outage'] as const;
export type Phase = (typeof PHASES)[number];

const LOAD_MS = 250;
const OUTAGE_MS = 200;
/** Only a hang reaches these limits. */
const END_TIMEOUT_MS = 120_000;
const SERVICE_TIMEOUT_MS = 120_000;

export interface Round {
  readonly report: CallReport;
  readonly exitCode: number;
  readonly wasReady: boolean;
}

/** Runs one round. @throws AssertionError for anything but correct responses, 503, or an end with one line */
export async function runFaultRound(scope: Scope, vault: LoadedVault, phase: Phase, fault: CallFault): Promise<Round> {
  const service = await launchSupervised(scope, vault.dataDir, fault, { isArmed: phase.endsWith('start') });
  let hasEnded = false;
  void service.ended.then(() => {
    hasEnded = true;
  });
  const address = await service.ready.catch(() => null);
  if (address !== null) {
    if (phase === 'load' || phase === 'outage') service.arm();
    if (phase !== 'first start') await work(vault, service, phase, address, () => hasEnded);
    if (phase === 'stop') service.arm();
    service.child.kill('SIGTERM');
  }
  const exitCode = await endOf(service);
  const report = service.report();
  const told = `${phase}, ${JSON.stringify(fault)}: ${JSON.stringify(report)}\n${service.output()}`;
  assertEnd(service, exitCode, report, told);
  return { report, exitCode, wasReady: address !== null };
}

async function work(vault: LoadedVault, service: Supervised, phase: Phase, address: string, hasEnded: () => boolean) {
  const adminToken = readToken(`${vault.dataDir}/daemon.token`);
  const startedAt = performance.now();
  const passed = () => performance.now() - startedAt;
  const loadMs = phase === 'outage' ? OUTAGE_MS + LOAD_MS : LOAD_MS;
  const running = vault.runLoad(address, adminToken, () => hasEnded() || passed() > loadMs);
  if (phase === 'outage') {
    await sleep(OUTAGE_MS);
    service.disarm();
  }
  await running;
  if (phase === 'outage' && !hasEnded()) await assertServesAgain(vault, address, adminToken, hasEnded);
}

/** A service that survived the outage accepts changes again, without a restart. */
async function assertServesAgain(
  { journal }: LoadedVault,
  address: string,
  adminToken: string,
  hasEnded: () => boolean,
) {
  const admin = createClient(address, adminToken);
  const [path, value] = ['load/w0/a', 'after the outage'];
  const store = () =>
    journal.send({ event: 'credential.store', agentName: 'admin', resource: path, value }, () =>
      admin.post('/api/v1/credentials', { path, value }),
    );
  await until(
    async () => hasEnded() || (await store())?.status === 201,
    SERVICE_TIMEOUT_MS,
    () => 'the service accepts no changes after the outage',
  );
}

async function endOf(service: Supervised): Promise<number> {
  const end = await Promise.race([service.ended, sleep(END_TIMEOUT_MS, 'hang' as const, { ref: false })]);
  assert.equal(typeof end, 'number', `the service ended with ${end}: ${service.output()}`);
  return Number(end);
}

/** It exits with 0, or with 1 and one line for the operator. */
function assertEnd({ output }: Supervised, exitCode: number, { failures }: CallReport, told: string): void {
  const lines = output().split('\n');
  const forOperator = lines.filter((line) => line.startsWith('leasehold: '));
  assert.equal(exitCode === 0 || (exitCode === 1 && failures > 0), true, `exit code ${exitCode}: ${told}`);
  assert.equal(forOperator.length, exitCode, told);
  // Else the banner, and the log's lines of JSON.
  assert.doesNotMatch(output(), /^ {4}at |Error: |Traceback/m, told);
}
