// The control state in memory: an agent is in it by its id and its name, or not at all.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { putRow, removeRow } from '../../src/core/change.ts';
import { ControlState } from '../../src/core/control.ts';
import type { AgentId, AgentName } from '../../src/core/names.ts';
import { anAgent } from '../contract/rows.ts';

const agentNamed = (n: number, name: string) => ({ ...anAgent(n), name: name as AgentName });

test('a removal that names one agent by its id and another by its name removes both whole', () => {
  const [first, second] = [agentNamed(1, 'first'), agentNamed(2, 'second')];
  const control = new ControlState([first, second], []);
  control.apply(removeRow('agent', { id: first.id, name: second.name }) as never);
  for (const { id, name } of [first, second]) {
    assert.deepEqual(
      [control.agentById(id), control.agentByName(name), control.isNameTaken(name)],
      [null, null, false],
    );
  }
  assert.equal(control.agentCount, 0);
});

test('a removal of an unknown id ends the agent of the name, whatever its case, and its id', () => {
  const agent = agentNamed(1, 'victim');
  const control = new ControlState([agent], []);
  control.apply(removeRow('agent', { id: 'another' as AgentId, name: 'VICTIM' as AgentName }) as never);
  assert.deepEqual([control.agentById(agent.id), control.agents()], [null, []]);
  control.apply(putRow('agent', agentNamed(2, 'Victim')) as never);
  assert.deepEqual([control.agentById(agent.id), control.agentCount], [null, 1]);
});
