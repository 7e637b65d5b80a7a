// deploy/, as far as it can be checked without a container engine: named files exist, and repeated settings agree.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { HARDENING, TUNING, withoutCoreDumps } from '../../scripts/flags.mjs';
import { parseRootKey } from '../../src/crypto/vault-keys.ts';
import { SERVER_FLAGS } from '../../src/server/flag-table.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { readContainerfile } from './containerfile.ts';
import { ROOT } from './source.ts';

const DEPLOY = path.join(ROOT, 'deploy');
const read = (name: string): string => readFileSync(path.join(DEPLOY, name), 'utf8');
type YamlMap = Readonly<Record<string, unknown>>;
const compose = asMap(parse(read('compose.yaml'), { merge: true }));
const services = Object.entries(asMap(compose['services'])).map(([name, service]) => ({ name, ...asMap(service) }));
const nodes = services.filter(({ name }) => /^node\d$/.test(name));

/** The allowed keys of a service; some engines ignore a misspelt key. */
const SERVICE_KEYS = new Set(
  'name image build pull_policy entrypoint command environment secrets volumes networks ports depends_on restart user hostname healthcheck read_only cap_drop security_opt ulimits stop_signal stop_grace_period'.split(
    ' ',
  ),
);

function asMap(value: unknown): YamlMap {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value));
  return value as YamlMap;
}

/** The words of a sequence, or the keys of a mapping. */
function words(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(String);
  return value === undefined ? [] : Object.keys(asMap(value));
}

test('every service has only keys of compose files, and names only what the file defines', () => {
  for (const service of services) {
    const { name, ...rest }: YamlMap & { name: string } = service;
    assert.deepEqual(
      Object.keys(rest).filter((key) => !SERVICE_KEYS.has(key)),
      [],
      name,
    );
    for (const kind of ['secrets', 'networks'] as const) {
      const defined = new Set(words(compose[kind]));
      assert.deepEqual(
        words(rest[kind]).filter((word) => !defined.has(word)),
        [],
        `${name}: ${kind}`,
      );
    }
    for (const [other, { condition }] of Object.entries(asMap(rest['depends_on'] ?? {})).map(
      ([key, value]) => [key, asMap(value)] as const,
    )) {
      const on = services.find((each) => each.name === other);
      assert.ok(on !== undefined, `${name} depends on ${other}`);
      const isRight =
        condition === 'service_completed_successfully'
          ? !('restart' in on)
          : condition === 'service_healthy' && 'healthcheck' in on;
      assert.ok(isRight, `${name} waits for ${other} to be ${condition}`);
    }
  }
  const used = new Set(services.flatMap((service) => words((service as YamlMap)['secrets'])));
  assert.deepEqual(
    words(compose['secrets']).filter((name) => !used.has(name)),
    [],
  );
});

test('every file, directory and volume that a service mounts exists', () => {
  const volumes = new Set(words(compose['volumes']));
  for (const service of services) {
    for (const mount of words((service as YamlMap)['volumes'])) {
      const [from = ''] = mount.split(':');
      assert.ok(
        from.startsWith('./') ? existsSync(path.join(DEPLOY, from)) : volumes.has(from),
        `${service.name}: ${mount}`,
      );
    }
  }
});

test('no node leaves a core dump', () => {
  for (const node of [...nodes, ...services.filter(({ name }) => name === 'schema')] as YamlMap[]) {
    assert.equal(asMap(node['ulimits'])['core'], 0);
  }
});

test('three equal nodes exist, each with a separate volume', () => {
  assert.equal(nodes.length, 3);
  const alike = new Set(nodes.map(({ name: _, ...node }) => JSON.stringify({ ...node, volumes: null })));
  assert.equal(alike.size, 1);
  assert.equal(new Set(nodes.map((node) => String(words((node as YamlMap)['volumes'])))).size, 3);
});

test('every flag of a command is a flag of the program', () => {
  const toSchemaHelp = [path.join(ROOT, 'src/bin/leasehold.ts'), 'schema', '--help'];
  const schemaHelp = execFileSync(process.execPath, toSchemaHelp, { encoding: 'utf8' });
  for (const { name, ...service } of services as YamlMap[]) {
    const known =
      name === 'schema'
        ? schemaHelp
        : Object.keys(SERVER_FLAGS)
            .map((flag) => ` --${flag} `)
            .join('');
    if (!/^node\d$|^schema$/.test(String(name))) continue;
    const flags = words(service['command']);
    assert.ok(flags.length > 0);
    for (const flag of flags) assert.ok(known.includes(` ${flag.replace(/=.*/, '')} `), `${name}: ${flag}`);
  }
});

test('every named file below run/secrets is a secret of that service', () => {
  for (const { name, ...service } of services as YamlMap[]) {
    const granted = new Set(words(service['secrets']));
    const named = [
      ...words(service['command'])
        .join(' ')
        .matchAll(/\/run\/secrets\/(\w+)/g),
    ].map(([, secret = '']) => secret);
    assert.deepEqual(
      named.filter((secret) => !granted.has(secret)),
      [],
      String(name),
    );
  }
  assert.match(read('haproxy.cfg'), /ssl crt \/run\/secrets\/balancer /);
});

test('no environment and no file of deploy contains a password, key or token', () => {
  const environments = services.flatMap((service) => words((service as YamlMap)['environment']));
  assert.deepEqual(new Set(environments), new Set(['FIRST_ROLE', 'PEER']));
  for (const name of readdirSync(DEPLOY, { recursive: true, encoding: 'utf8' })) {
    if (name.startsWith('secrets/') || !statSync(path.join(DEPLOY, name)).isFile()) continue;
    assert.doesNotMatch(read(name), /lha_[\w-]{20}|PASSWORD '|[0-9a-f]{32}|[A-Za-z0-9+/]{43}=/, name);
  }
});

test('secrets.sh creates every secret that compose.yaml names, in a valid form, and never overwrites one', (t) => {
  const directory = temporaryDirectory(t);
  cpSync(path.join(DEPLOY, 'secrets.sh'), path.join(directory, 'secrets.sh'));
  const run = () => execFileSync('sh', [path.join(directory, 'secrets.sh')], { stdio: 'pipe' });
  run();
  const made = path.join(directory, 'secrets');
  const secret = (name: string): string => readFileSync(path.join(made, name), 'utf8').trim();
  const files = Object.entries(asMap(compose['secrets'])).map(([name, value]) => [name, asMap(value)['file']]);
  assert.deepEqual(
    files,
    words(compose['secrets']).map((name) => [name, `./secrets/${name}`]),
  );
  assert.deepEqual(readdirSync(made).sort(), [...words(compose['secrets']), 'ca_key'].sort());
  for (const name of readdirSync(made)) assert.equal(statSync(path.join(made, name)).mode & 0o777, 0o400, name);

  assert.notEqual(parseRootKey(secret('root_key')), null);
  assert.match(secret('admin_token'), /^lha_[0-9a-f]{64}$/);
  for (const role of ['owner', 'node']) {
    const address = parseAddress(secret(`${role}_url`).replace('/run/secrets', made));
    assert.equal(address.user, `leasehold_${role}`);
    assert.equal(address.password, secret(`${role}_password`));
    assert.equal(address.rootCertificates, readFileSync(path.join(made, 'ca'), 'latin1'));
    const hosts = address.hosts.map((host) => (host.kind === 'tcp' ? host.host : ''));
    for (const host of hosts)
      assert.ok(
        services.some(({ name }) => name === host),
        host,
      );
  }
  const verify = [
    'verify',
    '-CAfile',
    path.join(made, 'ca'),
    path.join(made, 'postgres_certificate'),
    path.join(made, 'balancer'),
  ];
  execFileSync('openssl', verify, { stdio: 'pipe' });

  const before = secret('root_key');
  assert.throws(run, /deploy\/secrets exists already/);
  assert.equal(secret('root_key'), before);
});

test('the balancer checks every node, under the address that the nodes trust, within their limit for one address', () => {
  const text = read('haproxy.cfg');
  const asked = [...text.matchAll(/^ {2}server (\w+) (\w+):7700$/gm)].map(([, , host]) => host);
  assert.deepEqual(
    asked,
    nodes.map(({ name }) => name),
  );
  const balancer = services.find(({ name }) => name === 'balancer') as YamlMap;
  const inside = asMap(asMap(balancer['networks'])['inside']);
  for (const node of nodes as YamlMap[]) {
    assert.ok(words(node['command']).includes(`--trusted-proxy=${inside['ipv4_address']}`));
  }
  assert.ok(Number(/maxconn (\d+) resolvers/.exec(text)?.[1]) < 500);
  // A caller of the balancer must not choose what the nodes believe of it.
  for (const [rule, name] of [
    ['set-header', 'For %[src]'],
    ['set-header', 'Proto https'],
    ['del-header', 'Host'],
  ] as const) {
    assert.ok(text.includes(`http-request ${rule} X-Forwarded-${name}\n`), name);
  }
  assert.match(text, /http-check send meth GET uri \/readyz ver HTTP\/1\.1 hdr Host localhost$/m);
});

/**
 * Runs entry.sh of postgres1 with stubs of the programs of the image. `data` is what its volume has, `peer` what the
 * other server answers. Returns what was done, one word each.
 */
function runEntry(t: TestContext, data: 'none' | 'primary' | 'standby', peer: { role: string; timeline: number }) {
  const directory = temporaryDirectory(t);
  const [bin, run, pgdata] = ['bin', 'run', 'data/pg'].map((name) => path.join(directory, name));
  assert.ok(bin && run && pgdata);
  for (const each of [bin, path.join(run, 'secrets'), path.join(run, 'postgres-secrets'), pgdata]) {
    mkdirSync(each, { recursive: true });
  }
  for (const name of ['secrets', 'postgres-secrets']) writeFileSync(path.join(run, name, 'replica_password'), 'p');
  if (data !== 'none') writeFileSync(path.join(pgdata, 'PG_VERSION'), '18');
  if (data === 'standby') writeFileSync(path.join(pgdata, 'standby.signal'), '');
  const log = path.join(directory, 'log');
  const stubs = {
    install: '',
    chown: '',
    gosu: 'shift; exec "$@"',
    sleep: `echo waits >> ${log}; [ "$(wc -l < ${log})" -lt 3 ] || touch ${run}/start-as-primary`,
    psql: `case "$*" in *IDENTIFY_SYSTEM) echo '7|${peer.timeline}|0/0|' ;; *) echo '${peer.role}' ;; esac`,
    pg_controldata: 'echo "Latest checkpoint\'s TimeLineID:       2"',
    pg_basebackup: `echo copies >> ${log}; mkdir ${pgdata}.new; touch ${pgdata}.new/PG_VERSION`,
    'docker-entrypoint.sh': `echo starts >> ${log}`,
  };
  for (const [name, text] of Object.entries(stubs)) {
    writeFileSync(path.join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  }
  const env = {
    PATH: `${bin}:${process.env['PATH']}`,
    RUN_DIR: run,
    PGDATA: pgdata,
    PEER: 'other',
    FIRST_ROLE: 'primary',
  };
  spawnSync('sh', [path.join(DEPLOY, 'postgres/entry.sh'), 'postgres'], { env, stdio: 'ignore' });
  const kept = readdirSync(path.dirname(pgdata)).filter((name) => name.includes('former'));
  return [...readFileSync(log, 'utf8').trim().split('\n'), ...kept.map(() => 'keeps')].join(' ');
}

test('a former primary comes back as a standby only, and no primary starts before its peer has answered', (t) => {
  const [standby, primary, none] = ['on', 'off', ''];
  const cases = [
    ['none', none, 0, 'starts'],
    ['none', primary, 2, 'copies starts'],
    ['primary', standby, 2, 'starts'],
    ['primary', primary, 3, 'copies starts keeps'],
    ['primary', primary, 2, 'waits'],
    ['primary', primary, 1, 'waits'],
    ['primary', none, 0, 'waits waits waits starts'],
    ['standby', none, 0, 'starts'],
  ] as const;
  for (const [data, role = '', timeline, done] of cases) {
    assert.equal(runEntry(t, data, { role, timeline }), done, `${data}, peer ${role} ${timeline}`);
  }
});

test('a shell can parse the shell scripts of deploy', () => {
  for (const name of ['secrets.sh', 'postgres/entry.sh', 'postgres/roles.sh']) {
    execFileSync('sh', ['-n', path.join(DEPLOY, name)], { stdio: 'pipe' });
  }
});

test('every image is pinned by a tag, and Node’s has the version of the tests', () => {
  const manifest = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  const runtime = JSON.parse(readFileSync(path.join(ROOT, 'scripts/runtime/package.json'), 'utf8'));
  const { images } = readContainerfile();
  assert.deepEqual(new Set(images), new Set([`docker.io/library/node:${runtime.version}-slim`]));
  for (const service of services as YamlMap[]) assert.match(String(service['image']), /:\d+\.\d+(?:\.\d+)?$/);
  assert.equal(
    nodes.every((node) => (node as YamlMap)['image'] === `leasehold:${manifest.version}`),
    true,
  );
});

test('the image’s Node has the flags of the launcher, and its account is not root', () => {
  const { entrypoint, user } = readContainerfile();
  const words = [...HARDENING, ...TUNING, '/opt/leasehold/src/bin/server.ts'];
  assert.deepEqual(entrypoint, withoutCoreDumps('node', words).flat());
  assert.equal(user, 'node:node');
});

test('the files that the image copies exist in the checkout and are not ignored by the builder', () => {
  const letThrough = read('Containerfile.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  const { copied } = readContainerfile();
  assert.deepEqual([...new Set(copied.map(({ from }) => from))].sort(), letThrough.sort());
  for (const { from } of copied) assert.ok(existsSync(path.join(ROOT, from)), from);
});

test('the backup unit keeps the newest 28 backups and what else is in the directory', (t) => {
  const directory = temporaryDirectory(t);
  const names = Array.from(
    { length: 40 },
    (_, index) => `leasehold-${'a'.repeat(22)}-20260101T0000${index + 10}Z-7.age`,
  );
  for (const [index, name] of [...names, 'notes.txt', '.killed.new', '.running.new'].entries()) {
    writeFileSync(path.join(directory, name), '');
    // The names do not count: the first one is the newest.
    const writtenAt = index < names.length ? 2_000_000_000 - index : name === '.killed.new' ? 0 : 2_000_000_000;
    utimesSync(path.join(directory, name), writtenAt, writtenAt);
  }
  const commands = [...read('leasehold-backup.service').matchAll(/^ExecStartPost=(.*)$/gm)].map(
    ([, line = '']) => line,
  );
  assert.equal(commands.length, 2);
  for (const command of commands) execFileSync('sh', ['-c', command], { cwd: directory });
  assert.deepEqual(readdirSync(directory).sort(), [...names.slice(0, 28), 'notes.txt', '.running.new'].sort());
});
