/**
 * A program: a service that temporarily has no file descriptors while agents are registered and deregistered. `node
 * file-descriptors.ts` prints the statuses of both requests during that time, and the names of the key files then and
 * later; the service's log goes to standard error.
 */
import { closeSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keepAlive } from '../kit/keep-alive.ts';
import { startTestService } from '../kit/service.ts';

const after: (() => unknown)[] = [];
const scope = { after: (work: () => unknown) => void after.push(work) };
const { address, adminToken, dataDir, admin } = await startTestService(scope, ['--log-level', 'error']);
const call = keepAlive(scope, address, 1);
const agents = (): string[] => [
  ...readdirSync(join(dataDir, 'agents')).filter((name) => name !== '.pending'),
  ...readdirSync(join(dataDir, 'agents', '.pending')),
];
const send = (method: string, path: string, body?: unknown) => call(method, path, adminToken, body);

await send('POST', '/api/v1/agents', { name: 'first' });
// The connection is open, and modules that the first request loads are loaded.
await send('DELETE', '/api/v1/agents/first');
await send('POST', '/api/v1/agents', { name: 'first' });
const taken: number[] = [];
try {
  for (;;) taken.push(openSync('/dev/null', 'r'));
} catch {
  // None is left.
}
const deregistered = await send('DELETE', '/api/v1/agents/first');
const registered = await send('POST', '/api/v1/agents', { name: 'second' });
for (const descriptor of taken) closeSync(descriptor);
const during = agents();
const deadline = performance.now() + 100_000;
while (agents().length > 0 && performance.now() < deadline) await sleep(20);
const statuses = [deregistered.status, registered.status];
const known = (await admin.get('/api/v1/agents')).body.data.length;
process.stdout.write(`${JSON.stringify({ taken: taken.length, statuses, during, later: agents(), known })}\n`);
for (const work of after.reverse()) await work();
