/**
 * The load of the crash test on several nodes, during faults of the nodes or their database. After each fault
 * everything is compared with the clients' responses: no acknowledged change is lost or duplicated, and every node
 * verifies the chain.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Configuration, readConfiguration } from '../../src/server/configuration.ts';
import { readAuditKeys } from '../../src/server/offline-keys.ts';
import { Journal } from '../e2e/client-journal.ts';
import { type Counter, Inspector } from '../e2e/consistency-check.ts';
import type { Target } from '../e2e/fixture.ts';
import { Load } from '../e2e/load.ts';
import { createClient, readAgentKey } from '../kit/client.ts';
import type { Cluster, Node } from '../kit/cluster.ts';
import { Dice } from '../kit/dice.ts';

interface Storm {
  readonly cluster: Cluster;
  readonly seed: number;
  readonly rounds: number;
  /** Runs under load at a random moment; when it resolves, the cluster can recover. */
  upset(dice: Dice, nodes: Node[]): Promise<void>;
}

/** Milliseconds under load before a fault, and after all nodes have recovered. */
const LOAD_MS = { least: 100, more: 400 };
const AFTERWARDS_MS = 200;
/** Only a hang reaches this limit. */
const WELL_WITHIN_MS = 120_000;

/** `nodes` may be replaced by `upset`. @throws what was found to be lost, half done, doubled or invented */
export async function weather({ cluster, seed, rounds, upset }: Storm): Promise<Counter> {
  const dice = new Dice(seed);
  const journal = new Journal({ mayRefuse: true });
  const load = new Load(journal, dice.fork());
  const inspector = new Inspector(journal);
  const nodes = [...cluster.nodes];
  const target = await targetOf(cluster, nodes, dice.fork());
  await load.prepare(target);
  for (let round = 0; round < rounds; round++) {
    let isOver = false;
    const running = load.runUntil(target, () => isOver);
    await journal.untilLoaded(LOAD_MS.least + dice.below(LOAD_MS.more), 20);
    await upset(dice, nodes);
    await untilWell(nodes);
    await sleep(AFTERWARDS_MS);
    isOver = true;
    await running;
    await inspector.inspect(target, journal.take());
    await assertEachVerifies(nodes);
  }
  return inspector.tally;
}

/** Each call is sent to a random node. */
async function targetOf(
  { adminToken, rootKeyFile, url }: Cluster,
  nodes: readonly Node[],
  dice: Dice,
): Promise<Target> {
  const environment = { LEASEHOLD_DATABASE_URL: url };
  const auditKey = await readAuditKeys(
    readConfiguration(['--root-key-file', rootKeyFile], environment) as Configuration,
  );
  return {
    get address() {
      return dice.pick(nodes).address;
    },
    get admin() {
      return createClient(dice.pick(nodes).address, adminToken);
    },
    keyOf(name) {
      const holder = nodes.find(({ dataDir }) => existsSync(join(dataDir, 'agents', name)));
      assert.ok(holder, `no node has the key of ${name}`);
      return readAgentKey(holder.dataDir, name);
    },
    auditKey,
    agentsDir: null,
    scratchFile: `${rootKeyFile}.ndjson`,
  };
}

type Serving = Pick<Node, 'address' | 'admin'> & { output?(): string };

/** Resolves when every node serves again. */
export async function untilWell(nodes: readonly Serving[]): Promise<void> {
  const deadline = performance.now() + WELL_WITHIN_MS;
  for (const { address, admin, output } of nodes) {
    for (;;) {
      const health = await createClient(address, null)
        .get('/api/v1/health')
        .catch(() => null);
      // A node without requests may not have noticed yet.
      if (health?.status === 200 && (await admin.get('/api/v1/agents').catch(() => null))?.status === 200) break;
      assert.ok(performance.now() < deadline, `a node is not well again: ${health?.text}\n${output?.()}`);
      await sleep(50);
    }
  }
}

async function assertEachVerifies(nodes: readonly Node[]): Promise<void> {
  const verdicts = await Promise.all(nodes.map(({ admin }) => admin.get('/api/v1/audit/verify')));
  for (const { text, body } of verdicts) assert.equal(body.data?.valid, true, text);
  assert.equal(new Set(verdicts.map(({ text }) => text)).size, 1, 'the nodes see different logs');
}
