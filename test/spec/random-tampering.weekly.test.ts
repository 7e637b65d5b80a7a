// Random tampering with the rows of a vault with a random history: it grants nothing more and no wrong value, and is
// named. SOURCE: docs/formats.md, "State in the log"; SECURITY.md, "Removed entries". `SEED=n` repeats the choices.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { Dice } from '../e2e/random.ts';
import { withScope } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';
import { TamperedVault } from './tampered-vault.ts';

const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31));
const HISTORIES = scaled(1, 3);
const ACTS = scaled(8, 30);

test(`rows tampered with after random histories grant nothing more and are named (SEED=${seed})`, async (t) => {
  const dice = new Dice(seed);
  const outcomes: Record<string, number> = {};
  for (let history = 0; history < HISTORIES; history++) {
    await withScope(async (scope) => {
      const vault = await TamperedVault.build(scope, dice);
      for (let act = 0; act < ACTS; act++) {
        const outcome = await vault.tamper(dice);
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      }
    });
  }
  t.diagnostic(JSON.stringify(outcomes));
  assert.ok((outcomes['served'] ?? 0) > 0);
});
