// Backups of strangers, at random: a restore succeeds with a vault that verifies, or fails with one line, and touches
// nothing but its empty target. SEED=n repeats one.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { decodeStoredKeys } from '../../src/backup/records.ts';
import { AGENT_NAME } from '../../src/core/names.ts';
import { parseRootKey, VaultKeys } from '../../src/crypto/vault-keys.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { withScope } from '../kit/directory.ts';
import { addOperator, expectStatus } from '../kit/operators.ts';
import { scaled } from '../kit/scale.ts';
import { startTestService } from '../kit/service.ts';
import { photograph } from '../server/vaults.ts';
import { authenticate, type Content, encryptRecords, readContent } from './content.ts';
import { backUp, newPlace, restoreWith, startAt, wordsFor } from './fixture.ts';
import { MARKER, Mutator, toLines, toRecords } from './mutation.ts';

const ROUNDS = scaled(16, 600);
const FIRST_SEED = newSeed();
const scope = { after };

/** Rows of every table that a service writes within a test. */
async function richVault() {
  const place = await newPlace(scope, 'sqlite');
  const service = await startTestService(scope, [], place.dataDir, undefined, { approvalHoldMs: 20 });
  const { admin } = service;
  const ann = await addOperator(service, 'ann', ['approver']);
  await addOperator(service, 'ben', ['approver']);
  const worker = await service.agent('worker', { 'prod/*': ['retrieve', 'store'] });
  for (const version of [1, 2, 3]) {
    await expectStatus(admin.post('/api/v1/credentials', { path: 'prod/key', value: `value ${version}` }), 201);
  }
  const targets = [{ origin: 'http://127.0.0.1:1', allow_networks: ['127.0.0.0/8'] }];
  const placement = { kind: 'header', name: 'x-key', template: 'Key {value}' };
  await expectStatus(admin.put('/api/v1/targets/prod/key', { targets, placement }), 200);
  const limited = { resources: ['prod/*'], actions: ['use'], limits: { uses_per_hour: 9 } };
  const approval = { for: 'use', each: 'host', scope: '3 uses', quorum: 2 };
  await expectStatus(admin.put('/api/v1/policies/asks', { principal: 'agent:*', ...limited, approval }), 200);
  await worker.post('/api/v1/use', {
    path: 'prod/key',
    method: 'GET',
    url: 'http://127.0.0.1:1/',
    purpose: 'a report',
  });
  const [asked] = (await ann.get('/api/v1/approvals?status=pending')).body.data;
  await expectStatus(ann.post(`/api/v1/approvals/${asked.approval_id}/approve`, { nonce: asked.nonce }), 200);
  await worker.get('/api/v1/credentials/prod/key');
  await expectStatus(admin.post('/api/v1/leases/revoke', { agent: 'worker' }), 200);
  const repeated = { path: 'prod/once', value: 'x' };
  await worker.call('POST', '/api/v1/credentials', repeated, { 'idempotency-key': 'k' });
  const file = await backUp(scope, service);
  await service.stop();
  const rootKey = parseRootKey(readFileSync(join(place.dataDir, 'root.key'), 'utf8')) ?? assert.fail();
  const content = await readContent(file);
  const keys = VaultKeys.open(decodeStoredKeys(content.header.keys), rootKey) ?? assert.fail();
  return { dataDir: place.dataDir, content, keys };
}

const vault = await richVault();

/** Alters a copy of the backup with the seed. */
async function mutated(seed: number, made: Content): Promise<{ what: string; file: string }> {
  const dice = new Dice(seed);
  const mutator = new Mutator(dice);
  const done: string[] = [];
  const isAuthenticated = dice.pick([true, true, false]);
  const kind = dice.pick(['rows', 'rows', 'rows', 'rows', 'header', 'keys', 'line', 'order'] as const);
  if (kind === 'rows') for (let n = dice.pick([1, 1, 2]); n > 0; n--) done.push(mutator.alterRows(made));
  if (kind === 'header') done.push(mutator.alterJson(made.header, 'header'));
  if (kind === 'keys') done.push(mutator.alterJson(made.agentKeys, 'agent keys'));
  if (isAuthenticated) {
    try {
      authenticate(made, vault.keys);
      done.push('authentic');
    } catch {
      // Too little is left of it.
    }
  }
  const lines = toLines(made);
  const at = new Dice(seed + 1).below(lines.length);
  if (kind === 'line') {
    lines[at] = mutator.alterLine(lines[at] ?? '');
    done.push(`line ${at + 1}`);
  }
  if (kind === 'order') {
    const [moved = ''] = lines.splice(at, 1);
    lines.splice(dice.pick(lines.map((_, index) => index)), 0, moved, ...dice.pick([[], [moved]]));
    done.push(`line ${at + 1} moved`);
  }
  return { what: done.join(', '), file: await encryptRecords(scope, toRecords(lines)) };
}

test(`${ROUNDS} backups of strangers, from SEED=${FIRST_SEED}`, async (t) => {
  const counts = { restored: 0, refused: 0 };
  for (let seed = FIRST_SEED; seed < FIRST_SEED + ROUNDS; seed++) {
    await withScope(async (own) => {
      const place = await newPlace(own, 'sqlite', vault.dataDir);
      const parent = dirname(place.dataDir);
      mkdirSync(join(parent, MARKER));
      writeFileSync(join(parent, MARKER, 'agent_id'), 'mine');
      const before = photograph(parent);
      const { what, file } = await mutated(seed, structuredClone(vault.content));
      const context = `SEED=${seed}: ${what}`;
      const accepts = new Dice(seed + 2).chance(0.5) ? ['--accept-damage'] : [];
      const { code, out, told } = await restoreWith([...wordsFor(own, file, place), ...accepts]).catch((error) => {
        throw new Error(`${context}: not one line for the operator`, { cause: error });
      });
      const found = Object.entries(photograph(parent));
      const isTarget = (name: string): boolean => name === './data' || name.startsWith('./data/');
      const outside = (shots: [string, string][]) => shots.filter(([name]) => !isTarget(name));
      assert.deepEqual(outside(found), outside(Object.entries(before)), context);
      for (const line of [...told, ...out.split('\n')]) assert.doesNotMatch(line, /[^\P{C}]|PRECIOUS/u, context);
      if (code === 0) {
        counts.restored += 1;
        assert.match(out, accepts.length === 0 ? /The chain is valid/ : /The chain is /, context);
        for (const name of readdirSync(join(place.dataDir, 'agents')))
          assert.match(name, /^\.pending$|^[\w.-]+$/, context);
        return;
      }
      counts.refused += 1;
      assert.equal(code, 1, context);
      const empty = /^\.\/data(?:\/(?:root\.key|lock|agents(?:\/\.pending)?))?$/;
      for (const [name] of found.filter(([each]) => isTarget(each))) assert.match(name, empty, context);
    });
  }
  t.diagnostic(`${counts.restored} restored, ${counts.refused} refused`);
  assert.equal(counts.restored + counts.refused, ROUNDS);
});

test('a vault that such a file restores is served', async (t) => {
  const place = await newPlace(t, 'sqlite', vault.dataDir);
  const content = structuredClone(vault.content);
  authenticate(content, vault.keys);
  const file = await encryptRecords(t, toRecords(toLines(content)));
  const { code, told } = await restoreWith(wordsFor(t, file, place));
  assert.equal(code, 0, told.join('\n'));
  const restored = await startAt(t, place);
  assert.deepEqual(restored.warnings, []);
  const [agent] = (await restored.admin.get('/api/v1/agents')).body.data;
  assert.match(agent.name, AGENT_NAME);
  assert.equal((await restored.admin.get('/api/v1/audit/verify?state=true')).body.data.valid, true);
});
