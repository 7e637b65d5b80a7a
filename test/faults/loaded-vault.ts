/**
 * A vault with the load of the crash test, over any number of starts: every request is in a journal, and an inspection
 * compares the restarted service with all responses. It is the oracle of this directory: no acknowledged change is
 * lost, no response was wrong, and nothing else has happened.
 */
import { join } from 'node:path';
import { exportAuditKeys } from '../../src/crypto/chain.ts';
import { type Call, Journal } from '../e2e/client-journal.ts';
import { type Counter, Inspector } from '../e2e/consistency-check.ts';
import type { Target } from '../e2e/fixture.ts';
import { Load } from '../e2e/load.ts';
import { createClient, readAgentKey } from '../kit/client.ts';
import type { Dice } from '../kit/dice.ts';
import { type Scope, withScope } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';

export class LoadedVault {
  readonly dataDir: string;
  readonly journal = new Journal({ mayRefuse: true });
  readonly load: Load;
  readonly #inspector: Inspector;

  constructor(dataDir: string, dice: Dice) {
    this.dataDir = dataDir;
    this.load = new Load(this.journal, dice.fork());
    this.#inspector = new Inspector(this.journal);
  }

  get tally(): Counter {
    return this.#inspector.tally;
  }

  /** Starts the service, creates the data of the load, and stops it. */
  prepare(): Promise<void> {
    return this.#withService(async ({ address, adminToken }) =>
      this.load.prepare(await targetOf(this.dataDir, address, adminToken)),
    );
  }

  /** Starts the service without a fault and compares it with the responses since the last inspection. */
  async inspect(): Promise<void> {
    const calls = this.journal.take();
    await this.#withService(async ({ address, adminToken }) =>
      this.#inspector.inspect(await targetOf(this.dataDir, address, adminToken), calls),
    );
  }

  /** Runs the load until `isOver`. The service may reject, fail or end during that time. */
  async runLoad(address: string, adminToken: string, isOver: () => boolean): Promise<void> {
    return this.load.runUntil(await targetOf(this.dataDir, address, adminToken), isOver);
  }

  #withService(work: (service: { address: string; adminToken: string }) => Promise<void>): Promise<void> {
    return withScope(async (scope) => {
      const service = await startTestService(scope, [], this.dataDir);
      await work(service);
      await service.stop();
    });
  }
}

/** Compares a copy of a vault, such as a power cut leaves, with the responses until then. */
export async function inspectCopy(scope: Scope, dataDir: string, calls: readonly Call[]): Promise<Counter> {
  const inspector = new Inspector(new Journal());
  const service = await startTestService(scope, [], dataDir);
  await inspector.inspect(await targetOf(dataDir, service.address, service.adminToken), calls);
  await service.stop();
  return inspector.tally;
}

export async function targetOf(dataDir: string, address: string, adminToken: string): Promise<Target> {
  return {
    address,
    admin: createClient(address, adminToken),
    keyOf: (name) => readAgentKey(dataDir, name),
    auditKey: exportAuditKeys(await vaultKeysOf(dataDir)),
    agentsDir: join(dataDir, 'agents'),
    scratchFile: `${dataDir}.ndjson`,
  };
}
