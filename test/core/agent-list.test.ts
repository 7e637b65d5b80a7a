// The list of agents is in the order of names after any change, and reads and changes cost no sort of all agents.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Agent } from '../../src/core/agent.ts';
import { ControlState } from '../../src/core/control.ts';
import type { AgentId, AgentName, PublicKey } from '../../src/core/names.ts';
import { type Principal, principalMatches } from '../../src/core/policy.ts';
import { runs } from '../kit/property.ts';

const KEY = Buffer.alloc(32).toString('base64') as PublicKey;
const anAgent = (id: string, name: string): Agent => ({
  id: id as AgentId,
  name: name as AgentName,
  description: '',
  publicKey: KEY,
  registeredAt: 0,
  sessionsEndedAt: null,
  formerPublicKey: null,
  formerKeyUntil: null,
  registeredBy: [],
});

const names = fc.constantFrom('a', 'b', 'ab', 'A', 'a-1', 'a-2', 'Z', 'ci-1', 'ci-10', 'ci-2');
const steps = fc.array(fc.record({ isRemoval: fc.boolean(), name: names }), { maxLength: 40 });

test('after any changes the list has every agent in the order of names, and lists that were read are as they were', () => {
  fc.assert(
    fc.property(steps, fc.array(names, { maxLength: 5 }), (history, initial) => {
      const byName = new Map<string, Agent>();
      for (const name of initial) byName.set(name.toLowerCase(), anAgent(`first-${name}`, name));
      const control = new ControlState(byName.values(), []);
      const read: { list: readonly Agent[]; copy: readonly Agent[] }[] = [];
      for (const [at, { isRemoval, name }] of history.entries()) {
        const former = byName.get(name.toLowerCase());
        if (isRemoval) {
          if (former !== undefined) control.apply({ kind: 'removeAgent', id: former.id, name: former.name });
          byName.delete(name.toLowerCase());
        } else {
          const agent = anAgent(at % 2 === 0 && former?.name === name ? former.id : `id-${at}`, name);
          control.apply({ kind: 'putAgent', agent });
          byName.set(name.toLowerCase(), agent);
        }
        const list = control.agents();
        assert.deepEqual(
          list,
          [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
        );
        read.push({ list, copy: [...list] });
        for (const principal of ['agent:*', 'agent:a', 'agent:a*', 'agent:ci-1', 'agent:ci-1*', 'agent:z*']) {
          const isNamed = list.some((agent) => principalMatches(principal as Principal, agent.name));
          assert.equal(control.hasNamed(principal as Principal), isNamed, principal);
        }
      }
      for (const { list, copy } of read) assert.deepEqual(list, copy);
    }),
    runs(80, 1000),
  );
});

test('a read of the list, a change and the check of a principal compare few of many names', () => {
  let compared = 0;
  const counted = (number: number): Agent => {
    const agent = anAgent(`id-${number}`, '');
    const name = `agent-${(number * 7919) % 10_007}` as AgentName;
    return Object.defineProperty({ ...agent }, 'name', {
      get() {
        compared += 1;
        return name;
      },
    });
  };
  const control = new ControlState(
    Array.from({ length: 10_000 }, (_, number) => counted(number)),
    [],
  );
  const before = control.agents();
  compared = 0;
  assert.equal(control.agents(), before);
  assert.equal(compared, 0);
  control.apply({ kind: 'putAgent', agent: counted(10_000) });
  assert.equal(control.agents().length, 10_001);
  assert.equal(control.hasNamed('agent:nobody*' as Principal), false);
  assert.equal(control.hasNamed('agent:nobody' as Principal), false);
  assert.ok(compared < 100, String(compared));
  for (let number = 0; number < 5000; number++) control.apply({ kind: 'putAgent', agent: counted(number) });
  const names = control.agents().map(({ name }) => name);
  assert.deepEqual(names, names.toSorted());
});
