// Tampering with the log by a writer of its database: no bit changes unnoticed, and each structural attack is found at
// its place, or the start is refused. SOURCE: SECURITY.md, P3.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Dice } from '../kit/dice.ts';
import { scaled } from '../kit/scale.ts';
import { openAttackedVault } from './attacked-vault.ts';
import { flipEveryBit } from './bit-flips.ts';
import { flipExport } from './export-flips.ts';
import { buildKnownLog, ENTRIES } from './known-log.ts';
import { ATTACKS } from './log-attacks.ts';

/** One of so many entries is flipped in full. */
const ONE_OF = scaled(40, 1);
const EXPORT_FLIPS = scaled(20, 300);
const PLACES = scaled(2, 20);

const dice = new Dice(1);
const log = await buildKnownLog({ after }, ENTRIES, 1);
const vault = await openAttackedVault({ after }, log);

test('every single-bit flip of every column of an entry is found at that entry', (t) => {
  const entries = log.entries.slice(0, ENTRIES);
  const flips = flipEveryBit(entries, log.auditKey, (index) => index % ONE_OF === 0);
  t.diagnostic(`${flips} flips`);
  assert.ok(flips > (1200 * ENTRIES) / ONE_OF);
});

test('a single-bit flip of the export is found at its line, or the line is not accepted as an entry', async (t) => {
  const found = await flipExport(t, log, EXPORT_FLIPS, 1);
  t.diagnostic(JSON.stringify(found));
  assert.equal(found.broken + found.rejected, EXPORT_FLIPS);
});

for (const [what, attacker] of Object.entries(ATTACKS)) {
  test(`it is found at its place if ${what}`, async () => {
    for (let place = 0; place < PLACES; place++) {
      const attack = attacker(vault.log, dice);
      assert.equal(await vault.verify(attack), attack.breakAt, attack.sql);
      if (attack.breakAt !== null) continue;
      assert.equal(await vault.starts(attack), false, 'a log that is valid and shorter was accepted');
      break;
    }
  });
}

test('the log without an attack is valid, and the service starts on a copy of it', async () => {
  const nothing = { sql: 'SELECT 1', breakAt: null };
  assert.equal(await vault.verify(nothing), null);
  assert.equal(await vault.starts(nothing), true);
});
