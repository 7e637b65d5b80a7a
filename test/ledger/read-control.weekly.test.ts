// The proof of agents, operators and policies at a start, in a vault with many of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { subjectOf } from '../../src/core/resources.ts';
import { VaultKeys } from '../../src/crypto/vault-keys.ts';
import { withMac } from '../../src/ledger/authenticated-rows.ts';
import { readControl } from '../../src/ledger/read-control.ts';
import { readControlStates } from '../../src/store/recorded-states.ts';
import type { Procedure } from '../../src/store/statement.ts';
import { Policy } from '../../src/vault/policies/policy.ts';

const KEYS = VaultKeys.create(0, new Uint8Array(32).fill(2));
const TRIES = 5;

/** Processor milliseconds of a start with that many policies: the least of a few tries. */
async function timeOf(count: number, limitMs = 0): Promise<number> {
  const policies = Array.from({ length: count }, (_, n) => {
    const fields = { name: `policy-${n}`, principal: `agent:bot-${n}`, resources: ['a/*'], actions: ['use'] };
    const policy: Policy = { ...Policy.parse(fields), createdAt: 0 };
    return withMac(KEYS.row, 'policy', policy);
  });
  const states = new Map(policies.map((policy) => [subjectOf('policy', policy), policy.mac]));
  const store = {
    async run<T>(read: Procedure<T>): Promise<T> {
      if (read instanceof readControlStates) return states as T;
      const query = read.next();
      const isOfPolicies = !query.done && query.value.parts.join('').includes('FROM policies');
      return (isOfPolicies ? policies : []) as T;
    },
  };
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && least >= limitMs; tries++) {
    const warnings: string[] = [];
    const before = process.threadCpuUsage();
    const { control } = await readControl(store, KEYS, { kind: 'accepted' }, warnings);
    const { user, system } = process.threadCpuUsage(before);
    assert.deepEqual([control.policies.size, warnings], [count, []]);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

test('32 times as many policies are proven in about 32 times as long', async () => {
  await timeOf(1000); // compiles it
  const few = await timeOf(1000);
  const many = await timeOf(32_000, 90 * few);
  assert.ok(many < 90 * few, `${few.toFixed(1)} ms, and ${many.toFixed(1)} ms for 32 times as many`);
});
