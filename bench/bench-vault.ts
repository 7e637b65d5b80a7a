// A service of the bench over a vault of known size, which can be grown while the service is down.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '../test/kit/client.ts';
import { temporaryFolder } from '../test/kit/directory.ts';
import { bytesOnDisk, grow, NOTHING, type Sizes } from './fixtures.ts';
import type { Target } from './loads.ts';
import { type ServiceProgram, startService } from './program.ts';
import type { Stage } from './types.ts';

/** What the others are held against. */
export const SMALL: Sizes = { credentials: 1000, policies: 10, agents: 64, entries: 10_000 };

export class BenchVault {
  readonly dataDir: string;
  readonly #stage: Stage;
  #sizes: Sizes = NOTHING;
  #program: ServiceProgram | null = null;
  #bytesWhenGrown = 0;

  static async start(stage: Stage, sizes: Sizes): Promise<BenchVault> {
    const vault = new BenchVault(stage);
    // The first start makes the vault.
    vault.#program = await startService(stage.scope, vault.dataDir);
    await vault.grow(sizes);
    await vault.start();
    return vault;
  }

  private constructor(stage: Stage) {
    this.#stage = stage;
    this.dataDir = join(temporaryFolder(stage.scope), 'data');
  }

  get program(): ServiceProgram {
    if (this.#program === null) throw new Error('the service of this vault was stopped');
    return this.#program;
  }

  get target(): Target {
    const { credentials, agents } = this.#sizes;
    return { address: this.program.address, credentials, agents };
  }

  async start(): Promise<void> {
    this.#program = await startService(this.#stage.scope, this.dataDir);
  }

  async stop(): Promise<void> {
    await this.#program?.stop();
    this.#program = null;
  }

  /** Stops the service and takes the vault away: large ones would fill a disk before the run ends. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  /** Stops the service, and leaves it stopped. */
  async grow(sizes: Sizes): Promise<void> {
    await this.stop();
    await grow(this.dataDir, this.#sizes, sizes, this.#stage.say);
    this.#sizes = sizes;
    this.#bytesWhenGrown = this.bytesOnDisk();
  }

  get sizes(): Sizes {
    return this.#sizes;
  }

  get bytesWhenGrown(): number {
    return this.#bytesWhenGrown;
  }

  /** Of the vault when it is stopped: then everything is in one file. */
  bytesOnDisk(): number {
    return bytesOnDisk(this.dataDir);
  }

  async countEntries(): Promise<number> {
    const { address, adminToken } = this.program;
    const { body } = await createClient(address, adminToken).get('/api/v1/audit?limit=1');
    return body.meta.total;
  }
}
