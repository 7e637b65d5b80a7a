/** Damages copies of a known vault at random, and judges the responses of a service on each copy. */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Dice } from '../kit/dice.ts';
import { damage } from './damage.ts';
import { buildKnownVault, judge, judgeProcess, type KnownVault, type Outcome } from './known-vault.ts';

/** One of so many is started as a process too. */
const PROCESS_ONE_OF = 50;

export class DamageCampaign {
  readonly tally: Record<Outcome, number> & { vaults: number } = {
    vaults: 0,
    refused: 0,
    reported: 0,
    missing: 0,
    intact: 0,
  };
  readonly #directory: string;
  readonly #dice: Dice;
  readonly #vault: KnownVault;

  private constructor(directory: string, dice: Dice, vault: KnownVault) {
    this.#directory = directory;
    this.#dice = dice;
    this.#vault = vault;
  }

  static async begin(directory: string, dice: Dice): Promise<DamageCampaign> {
    return new DamageCampaign(directory, dice, await buildKnownVault(join(directory, 'known')));
  }

  /** Damages the next copy. @throws Error that names the damage, for a wrong response; the copy is kept */
  async next(): Promise<void> {
    const copy = this.#dice.below(this.#vault.copies.length);
    const dataDir = join(this.#directory, `damaged-${this.tally.vaults}`);
    cpSync(this.#vault.copies[copy] ?? '', dataDir, { recursive: true });
    const what = damage(dataDir, this.#dice);
    try {
      if (this.tally.vaults % PROCESS_ONE_OF === 0) await judgeProcess(dataDir);
      this.tally[await judge(this.#vault, copy, dataDir)] += 1;
    } catch (error) {
      throw new Error(`${what}, in ${dataDir}`, { cause: error });
    }
    this.tally.vaults += 1;
    rmSync(dataDir, { recursive: true });
  }
}
