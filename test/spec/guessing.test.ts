// Failed logins are throttled over HTTP; test/vault/login-throttle.test.ts has the numbers.
// SOURCE: docs/decisions.md, "Agents and sessions".

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestResponse } from '../kit/client.ts';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';

/** An issued challenge with a signature by another key. */
async function wrongProof({ anonymous }: TestService, agent_name: string) {
  const { body } = await anonymous.post('/auth/challenge', { agent_name });
  return { challenge_id: body.data.challenge_id, signature: 'AAAA', agent_name };
}

test('failed logins from an address are recorded up to a limit, then 429 and unrecorded; X-Forwarded-For tells it only from a trusted proxy', async (t) => {
  const failMany = async (service: TestService): Promise<readonly TestResponse[]> => {
    const proof = await wrongProof(service, 'forwarded');
    return Promise.all(
      Array.from({ length: 64 }, (_, n) => {
        const headers = { 'x-forwarded-for': `192.0.2.${n}` };
        return service.anonymous.call('POST', '/auth/verify', proof, headers);
      }),
    );
  };
  const direct = await startTestService(t);
  await direct.agent('forwarded');
  let recorded: string[] = [];
  const entries = await auditEntriesOf(direct, async () => {
    const answers: TestResponse[] = [];
    const limited = () => answers.filter(({ status }) => status === 429);
    // A slow machine is allowed one more failure for each second that it takes.
    while (limited().length === 0) answers.push(...(await failMany(direct)));
    for (const answer of limited()) assertRejected(answer, 'RATE_LIMITED');
    const failed = answers.filter(({ status }) => status !== 429);
    for (const answer of failed) assertRejected(answer, 'AUTH_FAILED');
    recorded = failed.map(() => 'auth.verify denied');
  });
  assert.deepEqual(
    entries.map(({ event_type, result }) => `${event_type} ${result}`),
    recorded,
  );
  const behindProxy = await failMany(await startTestService(t, ['--trusted-proxy', '127.0.0.1']));
  assert.deepEqual([...new Set(behindProxy.map(({ status }) => status))], [401]);
});
