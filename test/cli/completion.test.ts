// Completion: correct suggestions at every cursor position, within a time limit, and never an error.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { namesFrom, pathsFrom } from '../../src/cli/completion/complete.ts';
import { locateCursor } from '../../src/cli/completion/target.ts';
import { flagsOf } from '../../src/cli/flags.ts';
import { COMMANDS } from '../../src/cli/table.ts';
import { Leasehold } from '../../src/client/leasehold.ts';
import { type Home, newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

const target = (line: string) => locateCursor(line.split(' '), COMMANDS).target;
const offers = (line: string): string[] => {
  const found = target(line);
  if (found.kind === 'words') return found.offers.map(({ word }) => word);
  return [found.kind, ...(found.kind === 'names' ? (found.verbs ?? []).map(({ word }) => word) : [])];
};
const ask = (home: Home, ...words: readonly string[]): Promise<string[]> =>
  assertSaid(home.leasehold(['__complete', '--', ...words]));
/** A process that is slower than a person waits prints nothing at all, and ends. */
const assertOffersNothingSoon = async (home: Home, ...words: readonly string[]): Promise<void> => {
  const { code, stdout, stderr } = await home.spawned(['__complete', '--', ...words]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^(?:words\n)?$/);
};
const assertSaid = async (answer: ReturnType<Home['leasehold']>): Promise<string[]> => {
  const { code, stdout, stderr } = await answer;
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^(?:words|file|directory|command)\n/);
  return stdout.trimEnd().split('\n').slice(1);
};

test('every command, flag and choice of the table is offered at its position, and help does not list __complete', async (t) => {
  const first = offers('');
  for (const { name, flags = {} } of COMMANDS) {
    const words = name.split(' ');
    assert.ok(first.includes(words[0] ?? ''), name);
    const [verb = '', ...nouns] = words.toReversed();
    if (nouns.length > 0) assert.ok(offers(`${nouns.toReversed().join(' ')} `).includes(verb), name);
    const command = COMMANDS.find((each) => each.name === name);
    assert.ok(command !== undefined);
    if (command.takesAllWords === true) continue;
    assert.deepEqual(
      offers(`${name} --`),
      Object.keys(flagsOf(command)).map((flag) => `--${flag}`),
      name,
    );
    for (const [flag, { completes }] of Object.entries(flags)) {
      if (typeof completes === 'object') {
        assert.deepEqual(offers(`${name} --${flag} `), completes);
        assert.deepEqual(
          offers(`${name} --${flag}=`),
          completes.map((word) => `--${flag}=${word}`),
        );
      }
    }
  }
  assert.equal(new Set(first).size, first.length);
  const { stdout } = await newHome(t).leasehold(['--help']);
  assert.doesNotMatch(stdout, /__complete/);
});

test('the words before the cursor decide what is offered', () => {
  const kinds: readonly [line: string, kind: string, noun?: string, before?: string, begun?: string][] = [
    ['get ', 'names', 'path', '', ''],
    ['get prod/x', 'names', 'path', '', 'prod/x'],
    ['get --version 2 prod', 'names', 'path', '', 'prod'],
    ['get --version=2 prod', 'names', 'path', '', 'prod'],
    ['--profile dev get prod', 'names', 'path', '', 'prod'],
    ['get -o json prod', 'names', 'path', '', 'prod'],
    ['get prod/x ', 'words'],
    ['get --version ', 'words'],
    ['get --key-file ', 'file'],
    ['get --key-file=', 'file'],
    ['get --data-dir ', 'directory'],
    ['get --agent ', 'names', 'own agent', '', ''],
    ['agent show ', 'names', 'agent', '', ''],
    ['policy delete x', 'names', 'policy', '', 'x'],
    ['policy explain ', 'names', 'agent', '', ''],
    ['policy explain a ', 'words'],
    ['policy explain a retrieve ', 'names', 'path', '', ''],
    ['run --env ', 'words'],
    ['run --env NA', 'words'],
    ['run --env NAME=prod', 'names', 'path', 'NAME=', 'prod'],
    ['run --env=NAME=prod', 'names', 'path', '--env=NAME=', 'prod'],
    ['run --use op', 'names', 'path', '', 'op'],
    ['run --use NAME=op', 'names', 'path', 'NAME=', 'op'],
    ['run --use=op', 'names', 'path', '--use=', 'op'],
    ['run -e NAME=a=', 'names', 'path', 'NAME=', 'a='],
    ['run --env A=b -- ', 'command'],
    ['run --env A=b -- psql --file ', 'file'],
    ['lease list --path=', 'names', 'path', '--path=', ''],
    ['server --data', 'file'],
    ['help policy ', 'words'],
  ];
  for (const [line, kind, noun, before, begun] of kinds) {
    const wanted = kind === 'names' ? { kind, noun, before, begun } : { kind };
    const { offers: _, ...found } = { offers: null, ...target(line) };
    assert.deepEqual(found, wanted, line);
  }
  assert.deepEqual(offers('policy explain a '), ['retrieve', 'use', 'list', 'store', 'delete']);
  assert.deepEqual(offers('get --reveal --re'), [], 'a flag on the line is not offered again');
  assert.deepEqual(offers('run --env A=b --en'), ['--env', '--env-file'], 'unless it may be given again');
  assert.deepEqual(offers('nothing x '), []);
  assert.deepEqual(offers('--'), [...new Set(offers('--'))]);
  assert.deepEqual(offers('help policy sh'), ['show']);
});

test('paths are completed up to the next slash, and through directories with a single entry', () => {
  const paths = ['prod/db/password', 'prod/db/user', 'prod/mail', 'other/a/b/c', 'prodigy'];
  assert.deepEqual(pathsFrom(paths, ''), ['other/', 'prod/', 'prodigy']);
  assert.deepEqual(pathsFrom(paths, 'pro'), ['prod/', 'prodigy']);
  assert.deepEqual(pathsFrom(paths, 'prod/'), ['prod/db/', 'prod/mail']);
  assert.deepEqual(pathsFrom(paths, 'prod/d'), ['prod/db/password', 'prod/db/user']);
  assert.deepEqual(pathsFrom(paths, 'o'), ['other/a/b/c']);
  assert.deepEqual(pathsFrom(paths, 'x'), []);
  assert.deepEqual(pathsFrom([], ''), []);
});

test('for an agent only paths that it may list are requested, its session ends, and no request is rejected', async (t) => {
  const service = await startTestService(t);
  await service.agent('reader', { 'prod/*': ['list'] });
  for (const path of ['prod/a', 'prod/b', 'secret/c'])
    await service.admin.post('/api/v1/credentials', { path, value: 'x' });
  const flags = { LEASEHOLD_ADDR: service.address, LEASEHOLD_AGENT: 'reader', LEASEHOLD_DATA_DIR: service.dataDir };
  const home = newHome(t, flags);
  assert.deepEqual(await ask(home, 'get', ''), ['prod/a', 'prod/b']);
  const count = async (filter: string) => (await service.admin.get(`/api/v1/audit?${filter}`)).body.meta.total;
  assert.deepEqual([await count('event_type=credential.list'), await count('event_type=session.end')], [1, 1]);
  for (const noun of ['policy', 'agent']) assert.deepEqual(await ask(home, noun, 'show', ''), []);
  assert.equal(await count('result=denied'), 0);
  assert.deepEqual(await ask(home, 'get', '--agent', ''), ['reader'], 'its key is in the data directory');
  mkdirSync(join(home.path, '.config/leasehold/agents'), { recursive: true });
  for (const name of ['ci', 'cd', 'not a name'])
    writeFileSync(join(home.path, '.config/leasehold/agents', `${name}.pem`), '');
  assert.deepEqual(await ask(home, '--agent', 'c'), ['cd', 'ci']);
});

test('flags on the line choose the service and the caller', async (t) => {
  const service = await startTestService(t);
  await service.admin.post('/api/v1/credentials', { path: 'prod/a', value: 'x' });
  const home = newHome(t, { LEASEHOLD_ADDR: 'http://127.0.0.1:9' });
  const typed = ['get', '--address', service.address, `--data-dir=${service.dataDir}`, 'p'];
  assert.deepEqual(await ask(home, ...typed), ['prod/a']);
  assert.deepEqual(await ask(home, 'get', 'p'), []);
});

test('completion prints nothing, within its time limit, when the service or the caller is missing or the line is invalid', async (t) => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  t.after(() => silent.close());
  const address = silent.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const home = newHome(t, { LEASEHOLD_TOKEN: 'lha_0123456789abcdef' });
  const agents = newHome(t, { LEASEHOLD_AGENT: 'ci' });
  const nowhere = ['--address', `http://127.0.0.1:${port}`, ''];
  for (const [who, ...words] of [
    [home, 'get', ...nowhere],
    [home, 'policy', 'show', ...nowhere],
    [agents, 'get', ...nowhere],
  ] as const) {
    await assertOffersNothingSoon(who, ...words);
  }
  for (const words of [
    ['get', '--address', 'ftp://x', ''],
    ['get', '--token-file', '/nowhere', ''],
    ['get', '--timeout', '-1', ''],
  ]) {
    assert.deepEqual(await ask(home, ...words), [], `${words}`);
  }
  writeFileSync(join(home.path, 'leasehold.toml'), 'this is no TOML');
  assert.deepEqual(await ask(home, 'get', ''), []);
  assert.deepEqual(await ask(newHome(t), 'get', ''), []);
});

test('names from the service are completed only if they are valid names', async (t) => {
  const service = await startTestService(t);
  const names = ['fine', '$(rm -rf x)', 'a;b', 'a\nb', '\u001b[31mred', '-rf', '../x', 'a b', '`x`'];
  const lying: typeof fetch = (input) => {
    const texts = ['type', 'description', 'created_at', 'updated_at', 'principal', 'public_key', 'registered_at'];
    const others = Object.fromEntries(texts.map((field) => [field, 'x']));
    const lists = { resources: [], actions: [], max_ttl: 1, access_count: 1 };
    const data = names.map((name) => ({ ...others, ...lists, path: name, name }));
    return Promise.resolve(Response.json({ data, meta: { total: 9, limit: 1000, offset: 0 }, asked: String(input) }));
  };
  const vault = new Leasehold({ address: service.address, token: 'lha_x', fetch: lying });
  const { signal } = new AbortController();
  assert.deepEqual(await namesFrom(vault, 'path', signal), ['fine', '-rf']);
  for (const noun of ['agent', 'policy'] as const) assert.deepEqual(await namesFrom(vault, noun, signal), ['fine']);
});
