/** The catalogue as the client reads it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setScene, withCode } from './fixture.ts';

const scene = await setScene({ after });

test('the services of the catalogue are returned with their targets', async () => {
  const services = await scene.asAgent().services();
  const openai = services.find(({ name }) => name === 'openai') ?? assert.fail('openai is missing');
  assert.equal(openai.targets[0]?.origin, 'https://api.openai.com');
  assert.deepEqual(openai.placement, { kind: 'bearer' });
  assert.equal(services.find(({ name }) => name === 'jira')?.needs_host, true);
});

test('a service without one of its fields is an invalid response, and an additional field is accepted', async () => {
  const [row] = await scene.asAdmin().services();
  assert.ok(row !== undefined);
  const answer = (data: object) => scene.between.next({ status: 200, body: JSON.stringify({ data: [data] }) });
  answer({ ...row, added_later: 1 });
  assert.equal((await scene.asAdmin().services()).length, 1);
  for (const field of Object.keys(row)) {
    answer({ ...row, [field]: undefined });
    await assert.rejects(scene.asAdmin().services(), withCode('INVALID_RESPONSE', null), field);
  }
});
