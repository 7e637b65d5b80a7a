/**
 * A vault with an hour of work behind it, the same each time: for pictures, and for a look at every page with data.
 */
import { startUpstream, VALUE } from '../broker/upstream.ts';
import type { Scope } from '../kit/directory.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';
import { storeWithTargets } from '../kit/use.ts';

const MINUTE_MS = 60_000;
const START = '2026-03-02T08:30:00.000Z';
const MINUTES = 58;

export interface Scene {
  readonly service: TestService;
  /** A session of an operator with the role admin. */
  readonly token: string;
  /** The time at which the server's clock stands. */
  readonly now: Date;
}

const CREDENTIALS = {
  'prod/db/password': 'password',
  'prod/mail/password': 'password',
  'staging/db/password': 'password',
  'stripe/key': 'api_key',
} as const;

export async function buildScene(scope: Scope): Promise<Scene> {
  const clock = startTestClock(scope);
  // WHY not relative: each minute then begins at the same time, however long the requests of the last one took.
  const moveTo = (minutes: number) => clock.moveTo(new Date(Date.parse(START) + minutes * MINUTE_MS).toISOString());
  await moveTo(0);
  const upstream = await startUpstream(scope, (_, response) => response.end('{"models":[]}'));
  const service = await startTestService(scope);
  const { admin } = service;
  await storeWithTargets(service, 'openai/key', upstream, { paths: ['/v1/*'] });
  for (const [path, type] of Object.entries(CREDENTIALS)) {
    await admin.post('/api/v1/credentials', { path, type, value: VALUE, description: `The ${type} of ${path}` });
  }
  const target = { origin: 'https://api.stripe.com', paths: ['/v1/*'] };
  await admin.put('/api/v1/targets/stripe/key', { targets: [target], placement: { kind: 'bearer' } });
  const deploy = await service.agent('deploy-bot', { 'prod/*': ['retrieve', 'list'] });
  const research = await service.agent('research-bot', { 'openai/*': ['use'] });
  const intern = await service.agent('intern-bot', { 'staging/*': ['retrieve'] });
  const billing = await service.agent('billing-bot');
  await admin.post('/api/v1/agents', { name: 'night-watch', description: 'Checks the backups' });
  await admin.put('/api/v1/policies/billing-asks', {
    principal: 'agent:billing-bot',
    resources: ['stripe/*'],
    actions: ['use'],
    approval: { for: 'use' },
  });
  const ana = await addOperator(service, 'ana', ['admin']);
  await addOperator(service, 'ben', ['viewer', 'approver']);
  const use = (path: string): Promise<unknown> =>
    research.post('/api/v1/use', {
      path: 'openai/key',
      method: 'GET',
      url: `https://127.0.0.1:${upstream.port}${path}`,
    });
  for (let minute = 0; minute < MINUTES; minute++) {
    await moveTo(minute + 1);
    for (let times = 0; times < (minute * 7) % 4; times++) await use('/v1/models');
    if (minute % 3 === 0) await deploy.get('/api/v1/credentials/prod/db/password');
    if (minute % 10 === 4) await intern.get('/api/v1/credentials/prod/db/password');
    if (minute % 13 === 6) await use('/v2/keys');
  }
  const charge = { path: 'stripe/key', method: 'POST', url: 'https://api.stripe.com/v1/refunds' };
  // It waits for an approval until the server stops.
  void billing
    .post('/api/v1/use', { ...charge, body: 'charge=ch_42', purpose: 'refund order 42' })
    .catch(() => undefined);
  while ((await admin.get('/api/v1/approvals?status=pending&limit=1')).body.meta.total === 0) await moveTo(MINUTES);
  await admin.get('/api/v1/audit/checkpoint');
  await moveTo(MINUTES + 1);
  const now = new Date();
  return { service, token: await ana.enter(), now };
}
