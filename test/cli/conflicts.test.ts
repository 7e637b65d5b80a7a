// If another operator changes a resource between a command's read and its write, the command changes nothing, and names
// the operator.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { standBetween } from '../client/fault-proxy.ts';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const { admin } = service;
const ana = await addOperator(service, 'ana', ['admin']);
const between = await standBetween({ after }, service);
const { leasehold } = newHome({ after }, { LEASEHOLD_ADDR: between.address, LEASEHOLD_TOKEN: service.adminToken });

const POLICY = { principal: 'agent:ci', resources: ['ci/*', 'db/*'], actions: ['retrieve'], max_ttl: 60 };
const NARROW = { ...POLICY, resources: ['ci/*'] };
const TARGETS = { targets: [{ origin: 'https://one.example' }], placement: { kind: 'bearer' } };
const folder = temporaryDirectory({ after });
for (const name of ['applied', 'made'])
  writeFileSync(join(folder, `${name}.json`), JSON.stringify({ ...POLICY, max_ttl: 90 }));

interface Conflict {
  readonly command: readonly string[];
  readonly path: string;
  /** The state that the command reads; null if there is none. */
  readonly before: object | null;
  /** What ana writes before the command does; null to delete. */
  readonly theirs: object | null;
  readonly what: string;
}

const CONFLICTS: Readonly<Record<string, Conflict>> = {
  'policy put replaces nothing that it has not shown': {
    command: [
      'policy',
      'put',
      'put',
      '--principal',
      'agent:ci',
      '--resource',
      'ci/*,db/*,mail/*',
      '--action',
      'retrieve',
      '--yes',
    ],
    path: '/api/v1/policies/put',
    before: POLICY,
    theirs: NARROW,
    what: 'policy put',
  },
  'policy put does not create what was deleted meanwhile': {
    command: [
      'policy',
      'put',
      'gone',
      '--principal',
      'agent:ci',
      '--resource',
      'ci/*',
      '--action',
      'retrieve',
      '--yes',
    ],
    path: '/api/v1/policies/gone',
    before: POLICY,
    theirs: null,
    what: 'policy gone',
  },
  'policy put does not replace what was created meanwhile': {
    command: ['policy', 'put', 'new', '--principal', 'agent:ci', '--resource', 'ci/*', '--action', 'retrieve', '--yes'],
    path: '/api/v1/policies/new',
    before: null,
    theirs: NARROW,
    what: 'policy new',
  },
  'policy apply stops at a policy that was changed': {
    command: ['policy', 'apply', folder, '--yes'],
    path: '/api/v1/policies/applied',
    before: POLICY,
    theirs: NARROW,
    what: 'policy applied',
  },
  'target put --add adds to nothing that it has not read': {
    command: ['target', 'put', 'shop/key', '--add', '--origin', 'https://two.example'],
    path: '/api/v1/targets/shop/key',
    before: TARGETS,
    theirs: { ...TARGETS, targets: [{ origin: 'https://three.example' }] },
    what: 'the targets of shop/key',
  },
  'operator set gives back no role that was taken away': {
    command: ['operator', 'set', 'eve', '--description', 'on duty'],
    path: '/api/v1/operators/eve',
    before: { roles: ['viewer', 'editor'] },
    theirs: { roles: ['viewer'], description: 'on leave' },
    what: 'operator eve',
  },
};

await admin.post('/api/v1/credentials', { path: 'shop/key', value: 'v' });
await addOperator(service, 'eve', ['viewer']);

async function present(path: string): Promise<unknown> {
  const { status, body } = await admin.get(path);
  return status === 200 ? body.data : null;
}

for (const [claim, { command, path, before, theirs, what }] of Object.entries(CONFLICTS)) {
  test(claim, async () => {
    if (before !== null) assert.equal((await admin.put(path, before)).status, 200);
    let left: unknown;
    const change = async (): Promise<void> => {
      await (theirs === null ? ana.delete(path) : ana.put(path, theirs));
      left = await present(path);
    };
    between.next({ after: change }, (call) => call.method === 'PUT' && call.path === path);
    const { code, stderr } = await leasehold(command);
    assert.equal(code, 2, stderr);
    assert.match(
      stderr,
      new RegExp(`leasehold: operator:ana changed ${what} at \\S+ after this command read it \\(PRECON`),
    );
    assert.match(stderr, /The command changed nothing there\. Run it again to see the current state\./);
    assert.deepEqual(await present(path), left);
  });
}

test('the next apply shows the present state, and makes the rest', async () => {
  const { code, stderr } = await leasehold(['policy', 'apply', folder, '--yes']);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /resources: ci\/\* → ci\/\*, db\/\* {2}\(wider\)/);
});
