// Tests `leasehold scan`: output, exit codes, and moves into the real service; no value is printed.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Home, newHome } from '../kit/command.ts';
import type { Scope } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { type Screen, startScreen } from './screen.ts';

// Joined, so that a scan of this file does not find it.
const KEY = ['ghp', 'aZ3kQ9xB7mN2pL5vR8tW4yC6aZ3kQ9xB7mN2'].join('_');
const ENV = 'PORT=3000\nDB_PASSWORD=hunter2\nAPI_TOKEN="hunter3" # the old one\n';

function tree(home: Home): string {
  const folder = join(home.path, 'project');
  mkdirSync(join(folder, 'app'), { recursive: true });
  writeFileSync(join(folder, '.env'), ENV);
  writeFileSync(join(folder, 'app', '.env.local'), 'OTHER_SECRET=hunter4\n');
  writeFileSync(join(folder, 'app', 'a.ts'), `const token = '${KEY}';\n`);
  chmodSync(join(folder, '.env'), 0o640);
  return folder;
}

async function startFixture(scope: Scope) {
  const service = await startTestService(scope);
  const home = newHome(scope, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  const folder = tree(home);
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  const scans = (words: readonly string[]) => home.leasehold(['scan', ...words], { cwd: folder });
  const stored = async (path: string) => (await service.admin.get(`/api/v1/credentials/${path}`)).body.data?.value;
  return { service, home, folder, read, scans, stored };
}

test('findings are printed with location and rule, and the exit code is 3', async (t) => {
  const home = newHome(t);
  const { code, stdout, stderr } = await home.leasehold(['scan', '-o', 'json'], { cwd: tree(home) });
  assert.equal(code, 3);
  assert.deepEqual(JSON.parse(stdout), [
    { file: '.env', line: 2, rule: 'secret-assigned', name: 'DB_PASSWORD', hint: '…' },
    { file: '.env', line: 3, rule: 'secret-assigned', name: 'API_TOKEN', hint: '…' },
    { file: 'app/.env.local', line: 1, rule: 'secret-assigned', name: 'OTHER_SECRET', hint: '…' },
    { file: 'app/a.ts', line: 1, rule: 'github-token', name: null, hint: 'ghp_…' },
  ]);
  assert.match(stderr, /^4 found in 3 of 3 files\.\n/);
  assert.doesNotMatch(`${stdout}${stderr}`, /hunter|aZ3k/);
});

test('a tree without secrets ends with exit code 0 and needs no service', async (t) => {
  const home = newHome(t);
  writeFileSync(join(home.path, 'a.ts'), 'const token = read();\n');
  const { code, stdout, stderr } = await home.leasehold(['scan', '-o', 'json']);
  assert.deepEqual([code, stdout, stderr], [0, '[]\n', '0 found in 0 of 1 files.\n']);
});

test('secrets of env files are moved and replaced by references, and the rest is reported', async (t) => {
  const { scans, read, stored, folder } = await startFixture(t);
  const { code, stdout, stderr } = await scans(['--move', '--prefix', 'shop/dev', '--yes', '-o', 'json']);
  assert.equal(code, 3, stderr);
  const outcomes = (JSON.parse(stdout) as Record<string, unknown>[]).map(({ path, outcome }) => [path, outcome]);
  assert.deepEqual(outcomes, [
    ['shop/dev/DB_PASSWORD', 'moved'],
    ['shop/dev/API_TOKEN', 'moved'],
    ['shop/dev/app/local/OTHER_SECRET', 'moved'],
    [null, 'left'],
  ]);
  assert.equal(
    read('.env'),
    'PORT=3000\nDB_PASSWORD=leasehold://shop/dev/DB_PASSWORD\nAPI_TOKEN=leasehold://shop/dev/API_TOKEN # the old one\n',
  );
  assert.equal(statSync(join(folder, '.env')).mode & 0o777, 0o640);
  assert.equal(await stored('shop/dev/app/local/OTHER_SECRET'), 'hunter4');
  assert.doesNotMatch(`${stdout}${stderr}`, /hunter|aZ3k/);
  const again = await scans(['--exclude', '*.ts']);
  assert.equal(again.code, 0, again.stderr);
});

test('a dry run moves nothing and does not ask', async (t) => {
  const { scans, read, stored } = await startFixture(t);
  const { code, stdout } = await scans(['--move', '--prefix', 'shop', '--dry-run']);
  assert.equal(code, 3);
  assert.match(stdout, /DB_PASSWORD +… +shop\/DB_PASSWORD +would be moved/);
  assert.equal(read('.env'), ENV);
  assert.equal(await stored('shop/DB_PASSWORD'), undefined);
});

test('when the service rejects a value, its assignment is not changed', async (t) => {
  const { service, home, folder, read } = await startFixture(t);
  const { token } = await service.agent('ann', { 'shop/DB_PASSWORD': ['store'] });
  const run = { cwd: folder, environment: { LEASEHOLD_TOKEN: token } };
  const { code, stdout } = await home.leasehold(['scan', '.env', '--move', '--prefix', 'shop', '--yes'], run);
  assert.equal(code, 3);
  assert.match(stdout, /API_TOKEN.*ACCESS_DENIED/);
  assert.equal(read('.env'), ENV.replace('hunter2', 'leasehold://shop/DB_PASSWORD'));
});

test('each move is confirmed, and an answer other than yes leaves the value', async (t) => {
  const { service, home, folder, read } = await startFixture(t);
  const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };
  const screen = startScreen(t, ['scan', '.env', '--move', '--prefix', 'shop'], {
    home: home.path,
    folder,
    environment,
  });
  await screen.answer(/Move DB_PASSWORD \(\.env:2\) to shop\/DB_PASSWORD\? \[y\/N\] $/, 'n\r');
  await screen.answer(/Move API_TOKEN \(\.env:3\) to shop\/API_TOKEN\? \[y\/N\] $/, 'y\r');
  assert.equal(await screen.ended(), 3);
  assert.equal(read('.env'), ENV.replace('"hunter3"', 'leasehold://shop/API_TOKEN'));
  assert.doesNotMatch(screen.shown(), /hunter/);
});

test('an import asks, and the answer no stores nothing', async (t) => {
  const { service, home, folder, stored } = await startFixture(t);
  const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };
  const importing = (): Screen =>
    startScreen(t, ['import', '.env', '--prefix', 'x'], { home: home.path, folder, environment });
  const declined = importing();
  await declined.answer(/Store 3 new\? \[y\/N\] $/, '\r');
  assert.equal(await declined.ended(), 3);
  assert.equal(await stored('x/PORT'), undefined);
  const storing = importing();
  await storing.answer(/x\/DB_PASSWORD.*\[y\/N\] $/s, 'yes\r');
  assert.equal(await storing.ended(), 0);
  assert.equal(await stored('x/PORT'), '3000');
  assert.doesNotMatch(`${declined.shown()}${storing.shown()}`, /hunter/);
});

test('an interrupt at the question prints one line, and nothing is stored', async (t) => {
  const { service, home, folder, stored } = await startFixture(t);
  const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };
  for (const key of ['\u0003', '\u0004']) {
    const screen = startScreen(t, ['import', '.env'], { home: home.path, folder, environment });
    await screen.answer(/\[y\/N\] $/, key);
    assert.equal(await screen.ended(), 130);
    assert.match(screen.shown(), /leasehold: Cancelled\.\r\n$/);
  }
  assert.equal(await stored('PORT'), undefined);
});

const USAGE_ERRORS: readonly [words: readonly string[], says: RegExp][] = [
  [['--move'], /--move requires --prefix PATH/],
  [['--yes'], /require --move/],
  [['--prefix', 'a'], /require --move/],
  [['--move', '--prefix', '../a'], /--prefix: must not contain/],
  [['nowhere'], /nowhere: does not exist/],
];

for (const [words, says] of USAGE_ERRORS) {
  test(`a usage error: leasehold scan ${words.join(' ')}`, async (t) => {
    const { code, stdout, stderr } = await newHome(t).leasehold(['scan', ...words]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, says);
  });
}
