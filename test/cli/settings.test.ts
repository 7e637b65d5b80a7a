// Precedence of settings: flag, environment, project file, user file, detected value. An address from a project's file
// gets no token. The authority of a certificate is named by flag, variable or the user's profile.

import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, test } from 'node:test';
import { resolveSettings, titleOf } from '../../src/cli/settings/settings.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { type Home, newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

/** The address, the identity and the profile of a command with these flags, each with its source; or its error. */
async function told(
  home: Home,
  flags: readonly string[],
  environment: Record<string, string> = {},
  workingDirectory = home.path,
): Promise<string> {
  const terminal = { workingDirectory, environment: { HOME: home.path, ...environment }, stderr: new PassThrough() };
  const flag = (name: string): string | null => flags[flags.indexOf(`--${name}`) + 1 || flags.length] ?? null;
  try {
    const { address, identity, profile } = await resolveSettings(flag, terminal as unknown as Terminal);
    const who = identity.value;
    return [
      `address: ${address.value}, from ${address.source}`,
      `identity: ${'name' in who ? titleOf(who.name) : who.kind}, from ${identity.source}`,
      ...(profile === null ? [] : [`profile: ${profile.value}, from ${profile.source}`]),
    ].join('\n');
  } catch (error) {
    return String(error);
  }
}

function write(home: Home, path: string, text: string): string {
  const file = join(home.path, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
  return file;
}

const USER = '.config/leasehold/config.toml';

test('a flag overrides the environment, which overrides the project’s file, the user’s file and detected values', async (t) => {
  const home = newHome(t);
  const at = (port: number) => `http://127.0.0.1:${port}`;
  assert.match(await told(home, []), /^address: http:\/\/127\.0\.0\.1:7700, from the default$/m);
  write(home, '.leasehold/daemon.address', `${at(1)}\n`);
  assert.match(await told(home, []), /^address: http:\/\/127\.0\.0\.1:1, from daemon\.address in /m);
  write(home, USER, `address = "${at(2)}"\ntrusted_addresses = ["${at(3)}"]\n`);
  assert.match(await told(home, []), /^address: http:\/\/127\.0\.0\.1:2, from ~\/\.config\/leasehold\/config\.toml$/m);
  write(home, 'work/leasehold.toml', `address = "${at(3)}"\n[profiles.dev]\naddress = "${at(4)}"\n`);
  const folder = join(home.path, 'work/deep/er');
  mkdirSync(folder, { recursive: true });
  assert.match(
    await told(home, [], {}, folder),
    /^address: http:\/\/127\.0\.0\.1:3, from \.\.\/\.\.\/leasehold\.toml$/m,
  );
  const environment = { LEASEHOLD_ADDR: at(5) };
  assert.match(await told(home, [], environment, folder), /^address: http:\/\/127\.0\.0\.1:5, from LEASEHOLD_ADDR$/m);
  const all = await told(home, ['--address', at(6)], environment, folder);
  assert.match(all, /^address: http:\/\/127\.0\.0\.1:6, from --address$/m);
});

test('a profile is chosen by flag or environment, and an unknown one is a usage error', async (t) => {
  const home = newHome(t);
  write(
    home,
    USER,
    'profile = "dev"\n[profiles.dev]\naddress = "http://127.0.0.1:4"\n[profiles.prod]\nagent = "bot"\n',
  );
  assert.match(await told(home, []), /^address: http:\/\/127\.0\.0\.1:4, from .*\[profiles\.dev\]$/m);
  assert.match(await told(home, ['--profile', 'prod']), /^identity: agent bot, from .*\[profiles\.prod\], agent$/m);
  assert.match(await told(home, [], { LEASEHOLD_PROFILE: 'prod' }), /^profile: prod, from LEASEHOLD_PROFILE$/m);
  assert.match(
    await told(home, ['--profile', 'x']),
    /^UsageError: --profile: no settings file contains the profile "x"$/,
  );
});

const REFUSED: readonly [file: string, text: string, says: RegExp][] = [
  [USER, 'adress = "x"', /config\.toml: adress is unknown; the fields are address, agent/],
  [USER, 'address = 7', /config\.toml: address must be a string/],
  [USER, 'address = ', /config\.toml, line 1: the file is not valid TOML/],
  [USER, '[profiles]\ndev = 1', /\[profiles\.dev\] must be a table/],
  ['leasehold.toml', 'token = "x"', /leasehold\.toml: token does not belong in a committed file/],
  ['leasehold.toml', 'token_file = "x"', /leasehold\.toml: token_file does not belong in a committed file/],
  ['leasehold.toml', 'data_dir = "x"', /leasehold\.toml: data_dir does not belong in a committed file/],
  ['leasehold.toml', 'trusted_addresses = ["x"]', /does not belong in a committed file/],
];

test('an invalid settings file is rejected', async (t) => {
  for (const [file, text, says] of REFUSED) {
    const home = newHome(t);
    write(home, file, text);
    const { code, stderr } = await home.leasehold(['status']);
    assert.equal(code, 1, text);
    assert.match(stderr, says);
  }
});

test('empty, wrong and contradictory variables are usage errors', async (t) => {
  const home = newHome(t);
  assert.match(await told(home, [], { LEASEHOLD_ADDR: '' }), /LEASEHOLD_ADDR is empty/);
  assert.match(await told(home, [], { LEASEHOLD_INSECURE_HTTP: 'maybe' }), /must be 1, 0, true or false/);
  const both = { LEASEHOLD_TOKEN: 'lha_0123456789abcdef', LEASEHOLD_AGENT: 'bot' };
  assert.match(await told(home, [], both), /LEASEHOLD_TOKEN and LEASEHOLD_AGENT are both set/);
  assert.match(await told(home, ['--agent', 'bot'], both), /^identity: agent bot, from --agent$/m);
});

const [service, other] = [await startTestService({ after }), await startTestService({ after })];

test('on the machine of the server address and token are found automatically', async (t) => {
  const home = newHome(t);
  const { code, stdout } = await home.leasehold(['whoami', '-o', 'json', '--data-dir', service.dataDir]);
  assert.equal(code, 0);
  const found = JSON.parse(stdout);
  assert.deepEqual([found.name, found.address], ['admin', service.address]);
  assert.equal(statSync(join(service.dataDir, 'daemon.address')).mode & 0o777, 0o600);
});

test('the administrator’s token of the data directory is sent only to its own server, however loopback is spelt', async (t) => {
  const home = newHome(t);
  const dataDir = ['--data-dir', service.dataDir];
  const spelt = service.address.replace('127.0.0.1', 'localhost');
  assert.match(await told(home, ['--address', spelt, ...dataDir]), /^identity: token, from daemon\.token/m);
  // Another port may be another user's, or forwarded to another vault.
  for (const address of [other.address, 'https://vault.example.org']) {
    assert.match(await told(home, ['--address', address, ...dataDir]), /^identity: anonymous/m);
  }
});

test('an ended login, a key without an agent and an ignored file never lead to the administrator’s token', async (t) => {
  const home = newHome(t);
  const environment = { LEASEHOLD_DATA_DIR: service.dataDir };
  assert.equal((await home.leasehold(['agent', 'add', 'bot'], { environment })).code, 0);
  assert.equal((await home.leasehold(['login', '--agent', 'bot'], { environment })).code, 0);
  assert.equal((await home.leasehold(['login', '--agent', 'bot'], { environment })).code, 0, 'again');
  const file = join(home.path, '.local/state/leasehold/logins.json');
  const kept = JSON.parse(readFileSync(file, 'utf8'));
  kept[service.address].expires_at = '2020-01-01T00:00:00.000Z';
  writeFileSync(file, JSON.stringify(kept));
  const ended = await home.leasehold(['whoami'], { environment });
  assert.equal(ended.code, 0, 'the clock of the server decides');
  await service.as(kept[service.address].token).delete('/auth/session');
  const over = await home.leasehold(['whoami'], { environment });
  assert.deepEqual(
    [over.code, /Your session has expired[\s\S]*leasehold login --agent bot/.test(over.stderr)],
    [2, true],
  );
  assert.equal((await home.leasehold(['logout'], { environment })).code, 0);
  assert.equal((await home.leasehold(['whoami', '--field', 'name'], { environment })).stdout, 'admin\n');
  const keyed = await home.leasehold(['whoami', '--key-file', 'x.pem'], { environment });
  assert.deepEqual([keyed.code, /is given without a name/.test(keyed.stderr)], [1, true]);
  chmodSync(write(home, 'leasehold.toml', 'agent = "bot"\n'), 0o666);
  const unread = await home.leasehold(['whoami'], { environment });
  assert.deepEqual([unread.code, /it was not read/.test(unread.stderr)], [1, true]);
  assert.equal((await home.leasehold(['whoami', '--agent', 'bot'], { environment })).code, 0);
});

test('text from a file cannot control the terminal', async (t) => {
  const home = newHome(t);
  for (const text of [
    'address = "https://vault.example.org\\u001b[8m; touch x"',
    '"\\u001b[31mred" = 1',
    '[profiles."\\u001b]0;x\\u0007"]\nfoo = 1',
    'toString = 1',
  ]) {
    write(home, 'leasehold.toml', text);
    const { code, stderr } = await home.leasehold(['list']);
    assert.equal(code, 1);
    assert.doesNotMatch(stderr.replaceAll('\n', ''), /\p{Cc}/u);
  }
});

test('an address from a project’s file receives nothing before the user has logged in to it', async (t) => {
  const home = newHome(t);
  write(home, 'work/leasehold.toml', `address = "${service.address}"\n`);
  const folder = join(home.path, 'work');
  const environment = { LEASEHOLD_TOKEN: service.adminToken };
  const before = await home.leasehold(['list'], { cwd: folder, environment });
  assert.equal(before.code, 1);
  assert.match(before.stderr, /which you have not trusted yet[\s\S]*leasehold login --address/);
  assert.equal((await home.leasehold(['put', 'a/b', '-'], { cwd: folder, environment, input: 'x' })).code, 1);
  const login = await home.leasehold(['login', '--address', service.address], { cwd: folder, environment });
  assert.equal(login.code, 0, login.stderr);
  assert.equal((await home.leasehold(['list'], { cwd: folder })).code, 0);
  assert.equal((await home.leasehold(['logout'], { cwd: folder })).code, 0);
  assert.equal((await home.leasehold(['list'], { cwd: folder })).code, 1);
  write(home, USER, `trusted_addresses = ["${service.address}/"]\n`);
  assert.equal((await home.leasehold(['list'], { cwd: folder, environment })).code, 0);
});

test('an address from a project’s file and a login receives that login and no credentials for another address', async (t) => {
  const home = newHome(t);
  const folder = join(home.path, 'work');
  const [own, theirs] = [write(home, 'own', service.adminToken), write(home, 'theirs', other.adminToken)];
  const settings = `address = "${service.address}"\ntoken_file = "${own}"\n`;
  write(home, USER, settings);
  const login = ['login', '--address', other.address, '--token-file', theirs];
  assert.equal((await home.leasehold(login)).code, 0);
  write(home, 'work/leasehold.toml', `address = "${other.address}"\n`);
  const from = async (words: string[] = []) =>
    (await home.leasehold(['whoami', '--field', 'from', ...words], { cwd: folder })).stdout;
  assert.equal(await from(), 'leasehold login\n');
  assert.match(await from(['--token-file', theirs]), /^--token-file\n$/);
  const environment = { LEASEHOLD_TOKEN: service.adminToken };
  const before = await home.leasehold(['whoami'], { cwd: folder, environment });
  assert.equal(before.code, 1);
  assert.match(before.stderr, /^leasehold: LEASEHOLD_TOKEN would be sent to .*which leasehold\.toml sets/);
  write(home, USER, `${settings}trusted_addresses = ["${other.address}"]\n`);
  assert.equal(await from(), 'leasehold login\n', 'a token with another address belongs to that address');
  write(home, USER, `agent = "coder"\n`);
  write(home, 'work/leasehold.toml', `address = "${other.address}"\nagent = "coder"\nkey_file = "coder.pem"\n`);
  assert.equal(await from(), 'leasehold login\n', 'nothing is signed there');
});

test('a project’s file that others may write is ignored with a message', async (t) => {
  const home = newHome(t);
  chmodSync(write(home, 'leasehold.toml', 'address = "http://127.0.0.1:1"\n'), 0o666);
  const { code, stderr } = await home.leasehold(['status'], { environment: { LEASEHOLD_DATA_DIR: service.dataDir } });
  assert.equal(code, 0);
  assert.match(
    stderr,
    /WARNING {2}.*leasehold\.toml is not read: it belongs to another user, or other users can write to it/,
  );
});

test('a leasehold.toml that is not a file is ignored with a message', async (t) => {
  const home = newHome(t);
  const folder = join(home.path, 'work');
  mkdirSync(join(folder, 'leasehold.toml'), { recursive: true });
  const { code, stderr } = await home.leasehold(['whoami', '--data-dir', service.dataDir], { cwd: folder });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /leasehold\.toml is not read: it is not a file\.\n[\s\S]*it was not read: it is not a file\.\n.*Delete or rename it/,
  );
});

test('agent add and login print one line if their file cannot be written, and leave no session', async (t) => {
  const home = newHome(t);
  const environment = { LEASEHOLD_DATA_DIR: service.dataDir };
  const nowhere = await home.leasehold(['agent', 'add', 'unwritten'], {
    environment: { ...environment, XDG_CONFIG_HOME: '/proc/none' },
  });
  assert.equal(nowhere.code, 1);
  assert.match(
    nowhere.stderr,
    /^leasehold: \/proc\/none\/leasehold\/agents\/unwritten\.pem cannot be written \(ENOENT\)\.\n {2}To write it elsewhere, use --new-key/,
  );
  assert.equal((await home.leasehold(['agent', 'add', 'unwritten'], { environment })).code, 0);
  const login = await home.leasehold(['login', '--agent', 'unwritten'], {
    environment: { ...environment, XDG_STATE_HOME: '/proc/none' },
  });
  assert.equal(login.code, 2);
  assert.match(login.stderr, /^leasehold: \/proc\/none cannot be used \(ENOENT\)\.\n$/);
  const { body } = await service.admin.get('/api/v1/audit?agent=unwritten&event_type=session.end');
  assert.equal(body.meta.total, 1);
});

test('a login as an agent is kept in a private file, used, and ended by logout', async (t) => {
  const home = newHome(t);
  const dataDir = { LEASEHOLD_DATA_DIR: service.dataDir };
  assert.equal((await home.leasehold(['agent', 'add', 'keeper'], { environment: dataDir })).code, 0);
  const environment = { LEASEHOLD_ADDR: service.address };
  assert.equal((await home.leasehold(['login', '--agent', 'keeper'], { environment })).code, 0);
  const file = join(home.path, '.local/state/leasehold/logins.json');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const token: string = JSON.parse(readFileSync(file, 'utf8'))[service.address].token;
  const { stdout } = await home.leasehold(['whoami', '-o', 'json'], { environment });
  assert.deepEqual([JSON.parse(stdout).name, JSON.parse(stdout).from], ['agent:keeper', 'leasehold login']);
  const logins = await service.admin.get('/api/v1/audit?agent=keeper&event_type=auth.verify');
  assert.equal(logins.body.meta.total, 1, 'the session was used, and no other begun');
  assert.equal((await home.leasehold(['logout'], { environment })).code, 0);
  assert.equal((await service.as(token).get('/auth/session')).status, 401);
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), {});
  assert.equal((await home.leasehold(['logout'], { environment })).code, 1);
});

test('without a login an agent’s session ends with the command', async (t) => {
  const home = newHome(t);
  const environment = { LEASEHOLD_DATA_DIR: service.dataDir };
  assert.equal((await home.leasehold(['agent', 'add', 'passer'], { environment })).code, 0);
  assert.equal((await home.leasehold(['list', '--agent', 'passer'], { environment })).code, 0);
  const { body } = await service.admin.get('/api/v1/audit?agent=passer&order=asc');
  assert.deepEqual(
    body.data.map((entry: { event_type: string }) => entry.event_type),
    ['auth.verify', 'credential.list', 'session.end'],
  );
});

test('a token file that every user can read causes a warning, one that a group can read does not', async (t) => {
  const home = newHome(t);
  const file = join(home.path, 'token');
  writeFileSync(file, 'lha_0123456789abcdef\n');
  const doctor = async (mode: number) => {
    chmodSync(file, mode);
    return (await home.leasehold(['doctor', '--token-file', 'token'])).stderr;
  };
  assert.equal(await doctor(0o644), `WARNING  every user can read ${file}. To fix this: chmod o= ${file}\n`);
  assert.equal(await doctor(0o640), '');
});

test('a token is read from standard input and never from an argument', async (t) => {
  const home = newHome(t);
  const environment = { LEASEHOLD_ADDR: service.address };
  const login = (input: string, words: readonly string[] = ['-']) =>
    home.leasehold(['login', ...words], { input, environment });
  assert.equal((await login(`${service.adminToken}\n`)).code, 0);
  assert.equal((await home.leasehold(['whoami', '--field', 'name'], { environment })).stdout, 'admin\n');
  const short = await login('no token\n');
  assert.deepEqual([short.code, /does not contain a Leasehold token/.test(short.stderr)], [1, true]);
  const typed = await login('', [service.adminToken]);
  assert.equal(typed.code, 1);
  assert.doesNotMatch(typed.stderr, /lha_\w/);
  assert.match(
    (await login('', [])).stderr,
    /cannot prompt without a terminal\.\n {2}Use - to read it from standard input\./,
  );
});

test('the authority is named by flag, variable or the user’s profile; without it the error mentions the certificate', async (t) => {
  const certificate = makeCertificate(t);
  const { address, adminToken } = await startTestService(t, certificate.flags);
  const home = newHome(t, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: adminToken });
  const without = await home.leasehold(['list']);
  assert.equal(without.code, 2);
  assert.match(without.stderr, /^leasehold: the certificate of https:\S+ is not trusted/);
  assert.match(without.stderr, /--ca-file FILE or set LEASEHOLD_CA_FILE/);
  assert.doesNotMatch(without.stderr, /does the server run there/i);

  const ca = certificate.certFile;
  assert.equal((await home.leasehold(['list', '--ca-file', ca])).code, 0);
  assert.equal((await home.leasehold(['list'], { environment: { LEASEHOLD_CA_FILE: ca } })).code, 0);
  const config = join(home.path, '.config/leasehold');
  mkdirSync(config, { recursive: true });
  copyFileSync(ca, join(config, 'ca.pem'));
  writeFileSync(join(config, 'config.toml'), `[profiles.p]\naddress = "${address}"\nca_file = "ca.pem"\n`);
  const doctor = await home.leasehold(['doctor', '--profile', 'p']);
  assert.equal(doctor.code, 0, doctor.stdout + doctor.stderr);
  assert.match(doctor.stdout, /^certificate authority +ok +\S+ca\.pem, from ~\/\.config\S+ \[profiles\.p\], ca_file$/m);

  const other = await home.leasehold(['list', '--ca-file', makeCertificate(t).certFile]);
  assert.equal(other.code, 2);
  assert.match(other.stderr, /Only the certificate authorities in \S+cert\.pem are trusted \(--ca-file\)/);
});

test('an unusable authority file exits with 1, and a project’s file must not name one', async (t) => {
  const home = newHome(t, { LEASEHOLD_ADDR: 'https://127.0.0.1:9', LEASEHOLD_TOKEN: 'lha_0123456789abcdef' });
  const nowhere = await home.leasehold(['list', '--ca-file', 'nowhere.pem']);
  assert.equal(nowhere.code, 1);
  assert.match(nowhere.stderr, /--ca-file: \S+nowhere\.pem cannot be read \(ENOENT\)/);
  writeFileSync(join(home.path, 'text.pem'), 'no certificate');
  const text = await home.leasehold(['list', '--ca-file', 'text.pem']);
  assert.deepEqual([text.code, text.stderr], [1, 'leasehold: --ca-file: must be one or more certificates in PEM.\n']);
  writeFileSync(join(home.path, 'leasehold.toml'), 'ca_file = "ca.pem"\n');
  assert.match((await home.leasehold(['list'])).stderr, /ca_file does not belong in a committed file/);
});
