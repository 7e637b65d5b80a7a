/** docs/client.md is one program, which prints the output on the page. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { ROOT } from '../conventions/source.ts';
import { readBlocks } from '../e2e/markdown.ts';
import { AGENT, openShop } from './programs.ts';

const page = readFileSync(join(ROOT, 'docs/client.md'), 'utf8');
const program = readBlocks(page)
  .filter(({ language }) => language === 'ts')
  .map(({ text }) => text)
  .join('\n\n');
const library = join(ROOT, 'src/client/leasehold.ts');

test('the program prints what the page shows', async (t) => {
  const { directory, run, service } = await openShop(t);
  const upstream = await startUpstream(t, (_request, response) => response.end('{"models":["small"]}'));
  const origin = `https://127.0.0.1:${upstream.port}`;
  const { admin } = service;
  await admin.post('/api/v1/credentials', { path: 'api/key', value: 'a key of the upstream' });
  const targets = [{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }];
  await admin.put('/api/v1/targets/api/key', { targets, placement: { kind: 'bearer' } });
  const grant = { name: 'uses', principal: `agent:${AGENT}`, resources: ['api/*'], actions: ['use'] };
  await admin.post('/api/v1/policies', { ...grant, max_ttl: 60 });
  const file = join(directory, 'page.ts');
  writeFileSync(file, program.replaceAll("'leasehold/client'", JSON.stringify(library)));
  const { code, stdout, stderr } = await run(process.execPath, [file], { API_ORIGIN: origin });
  assert.deepEqual([code, stderr], [0, '']);
  const promised = [...program.matchAll(/^.*console\.log\(.*\/\/ → (.*)$/gm)].map(([, text = '']) => text);
  assert.ok(promised.length >= 8);
  assert.deepEqual(stdout.trimEnd().split('\n'), promised);
});
