// docs/from-env.md, run as written from an empty home: its commands, their output, the file before and after, and a
// program that makes a request with each key at a double of its service.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { ROOT } from '../conventions/source.ts';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';
import { targetOf } from '../kit/use.ts';

const PAGE = readFileSync(join(ROOT, 'docs/from-env.md'), 'utf8');
const blocks = (language: string): string[] =>
  [...PAGE.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, kind, text = '']) => (kind === language ? [text] : []));
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|[^\s']+/g)].map(([word, quoted]) => quoted ?? word);

/** A request with each key: the variable of its base URL, its path below that, and how its client sends the key. */
const REQUESTS: readonly [service: string, key: string, url: string, path: string, header: string, scheme: string][] = [
  ['openai', 'OPENAI_API_KEY', 'OPENAI_BASE_URL', '/models', 'authorization', 'Bearer '],
  ['anthropic', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', '/v1/models', 'x-api-key', ''],
  ['github', 'GITHUB_TOKEN', 'GITHUB_API_URL', '/user', 'authorization', 'Bearer '],
  ['stripe', 'STRIPE_SECRET_KEY', 'STRIPE_BASE_URL', '/v1/charges', 'authorization', 'Bearer '],
];
const APP = `const environment = process.env;
for (const [, key, url, path, header, scheme] of ${JSON.stringify(REQUESTS)}) {
  const response = await fetch(environment[url] + path, { headers: { [header]: scheme + environment[key] } });
  console.log(key, response.status, await response.text());
}
console.log(environment.PORT, environment.DB_PASSWORD === 'correct-horse');
console.log(Object.values(environment).some((value) => /sk-|ghp_|sk_test_/.test(value)));
`;

test('the page moves five keys of a .env file: four are used without their values, one is retrieved', async (t) => {
  const home = newHome(t);
  const directory = process.cwd();
  // Programs start in the directory of this process.
  process.chdir(home.path);
  t.after(() => process.chdir(directory));
  const service = await startTestService(t, [], join(home.path, '.leasehold'));
  const [before = '', imported, after] = blocks('text');
  const random = 'aZ3kQ9xB7mN2pL5vR8tW4yC6'.repeat(2).slice(0, 40);
  const env = before.replaceAll('…', random);
  const keyOf = (variable: string): string => new RegExp(`^${variable}=(.*)$`, 'm').exec(env)?.[1] ?? '';
  const file = join(home.path, '.env');
  writeFileSync(file, env);
  writeFileSync(join(home.path, 'app.mjs'), APP);
  const upstream = await startUpstream(t, ({ url, headers }, response) => {
    const sent = headers['x-api-key'] ?? String(headers.authorization).slice('Bearer '.length);
    response.end(`${url} ${REQUESTS.find(([, key]) => sent === keyOf(key))?.[0] ?? 'unknown key'}`);
  });
  const run = async (line: string): Promise<string> => {
    const [command, ...words] = wordsOf(line);
    assert.equal(command, 'leasehold');
    const { code, stdout, stderr } = await home.leasehold(words, { isInProcess: true });
    assert.equal(code, 0, `${line}\n${stderr}`);
    return stdout;
  };
  const [importing = '', granting = '', running = '', exposure = '', retrieving = ''] = blocks('sh');
  assert.equal(blocks('sh').length, 5);
  assert.equal(await run(importing), imported);
  assert.equal(readFileSync(file, 'utf8'), after);
  for (const line of granting.trim().split('\n')) await run(line);
  for (const [name, key] of REQUESTS) {
    const own = { service: name, targets: [targetOf(upstream)] };
    assert.equal((await service.admin.put(`/api/v1/targets/shop/${key}`, own)).status, 200);
  }
  assert.deepEqual((await run(running)).trim().split('\n'), [
    'OPENAI_API_KEY 200 /v1/models openai',
    'ANTHROPIC_API_KEY 200 /v1/models anthropic',
    'GITHUB_TOKEN 200 /user github',
    'STRIPE_SECRET_KEY 200 /v1/charges stripe',
    '3000 true',
    'false',
  ]);
  const rows = (await run(exposure)).trim().split('\n').slice(1);
  const found = rows.map((row) =>
    row.split(/\s{2,}/).flatMap((cell, at) => (at === 0 || /^(?:seen|used)$/.test(cell) ? [cell] : [])),
  );
  assert.deepEqual(found.map((cells) => cells.join(' ')).sort(), [
    'shop/ANTHROPIC_API_KEY used',
    'shop/DB_PASSWORD seen',
    'shop/GITHUB_TOKEN used',
    'shop/OPENAI_API_KEY used',
    'shop/STRIPE_SECRET_KEY used',
  ]);
  await run(retrieving);
  writeFileSync(file, (after ?? '').replace('shop/STRIPE_SECRET_KEY?use', 'shop/STRIPE_SECRET_KEY'));
  const masked = await run(`${running.trim().replace(/-- .*/, '')} -- printenv STRIPE_SECRET_KEY`);
  assert.equal(masked, '[secret]\n');
});
