// The command line of the server: every flag and variable, their precedence, and one-line errors for wrong values.
// SOURCE: docs/decisions.md, "The process".

import assert from 'node:assert/strict';
import { globSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { configurationPage } from '../../scripts/configuration-page.ts';
import { rejectUnknownVariables } from '../../src/flags/command-line.ts';
import type { Flag } from '../../src/flags/flag.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { type Configuration, readConfiguration } from '../../src/server/configuration.ts';
import { SERVER_FLAGS } from '../../src/server/flag-table.ts';
import { ROOT } from '../conventions/source.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const read = (flags: readonly string[], environment: Record<string, string> = {}): Configuration => {
  const configuration = readConfiguration(flags, environment);
  assert.ok(configuration);
  return configuration;
};
const variable = (flag: string) => `LEASEHOLD_${flag.toUpperCase().replaceAll('-', '_')}`;
const tcp = (host: string, port: number) => ({ kind: 'tcp', host, port });

interface Row {
  readonly seen: (configuration: Configuration) => unknown;
  readonly byDefault: unknown;
  /** Two valid texts and the setting that each gives. */
  readonly one: readonly [text: string, meaning: unknown];
  readonly other: readonly [text: string, meaning: unknown];
}

const VALUES: Readonly<Record<string, Row>> = {
  'data-dir': {
    seen: ({ dataDir }) => dataDir,
    byDefault: join(homedir(), '.leasehold'),
    one: ['/srv/vault', '/srv/vault'],
    other: ['near/by', resolve('near/by')],
  },
  listen: {
    seen: ({ listen }) => listen,
    byDefault: tcp('127.0.0.1', 7700),
    one: ['[::1]:0', tcp('::1', 0)],
    other: ['unix:/run/l.sock', { kind: 'unix', path: '/run/l.sock' }],
  },
  'root-key-file': {
    seen: ({ rootKeyFile }) => rootKeyFile,
    byDefault: null,
    one: ['/etc/key', '/etc/key'],
    other: ['key', resolve('key')],
  },
  'admin-token-file': {
    seen: ({ adminTokenFile }) => adminTokenFile,
    byDefault: null,
    one: ['/etc/token', '/etc/token'],
    other: ['token', resolve('token')],
  },
  'admin-retrieve': {
    seen: ({ adminMayRetrieve }) => adminMayRetrieve,
    byDefault: true,
    one: ['deny', false],
    other: ['allow', true],
  },
  'versions-kept': { seen: ({ versionsKept }) => versionsKept, byDefault: 10, one: ['1', 1], other: ['1000', 1000] },
  'public-name': {
    seen: ({ publicNames }) => publicNames,
    byDefault: [],
    one: ['a.example', ['a.example']],
    other: [' B.example, c.example,', ['b.example', 'c.example']],
  },
  'trusted-proxy': {
    seen: ({ trustedProxies }) => trustedProxies,
    byDefault: [],
    one: ['10.0.0.1', ['10.0.0.1']],
    other: ['10.0.0.0/8,::1', ['10.0.0.0/8', '::1']],
  },
  'target-networks': {
    seen: ({ targetNetworks }) => targetNetworks?.map(({ text }) => text) ?? null,
    byDefault: null,
    one: ['none', []],
    other: ['10.0.0.0/8, fd00::/8', ['10.0.0.0/8', 'fd00::/8']],
  },
  'log-level': {
    seen: ({ logLevel }) => logLevel,
    byDefault: 'info',
    one: ['debug', 'debug'],
    other: ['silent', 'silent'],
  },
};

for (const [flag, { seen, byDefault, one, other }] of Object.entries(VALUES)) {
  test(`--${flag}: the flag overrides the environment, and the environment the default`, () => {
    const environment = { [variable(flag)]: other[0] };
    assert.deepEqual(seen(read([])), byDefault);
    assert.deepEqual(seen(read([], environment)), other[1]);
    assert.deepEqual(seen(read([`--${flag}`, one[0]])), one[1]);
    assert.deepEqual(seen(read([`--${flag}=${one[0]}`], environment)), one[1]);
  });
}

test('a repeated list flag adds to the list', () => {
  const lists = {
    'public-name': ['a.example', 'b.example'],
    'trusted-proxy': ['10.0.0.1', '::1'],
    'target-networks': ['10.0.0.0/8', 'fd00::/8'],
    'log-stream': ['a=file:/a', 'b=file:/b'],
    'checkpoint-file': ['/a', '/b'],
  };
  const given = Object.entries(lists).flatMap(([flag, items]) => items.flatMap((item) => [`--${flag}`, item]));
  const { publicNames, trustedProxies, targetNetworks, logStreams, checkpointFiles } = read(given);
  const networks = targetNetworks?.map(({ text }) => text);
  assert.deepEqual([publicNames, trustedProxies, networks], Object.values(lists).slice(0, 3));
  assert.deepEqual([logStreams.length, checkpointFiles], [2, lists['checkpoint-file']]);
  assert.throws(() => read(['--target-networks', 'none', '--target-networks', '10.0.0.0/8']), UsageError);
});

test('the two TLS files are given together, each by flag or environment', () => {
  const [cert, key] = [resolve('c'), resolve('k')];
  assert.equal(read([]).tls, null);
  assert.deepEqual(read(['--tls-cert', 'c', '--tls-key', 'k']).tls, { certFile: cert, keyFile: key });
  assert.deepEqual(read(['--tls-cert', 'c'], { LEASEHOLD_TLS_KEY: 'k' }).tls, { certFile: cert, keyFile: key });
  const environment = { LEASEHOLD_TLS_CERT: 'x', LEASEHOLD_TLS_KEY: 'k' };
  assert.deepEqual(read(['--tls-cert', 'c'], environment).tls, { certFile: cert, keyFile: key });
});

test('a switch is on with its flag or with 1 or true in the environment, and off with 0 or false', () => {
  assert.equal(read([]).acceptClock, false);
  assert.equal(read(['--accept-clock']).acceptClock, true);
  assert.equal(read(['--accept-clock'], { LEASEHOLD_ACCEPT_CLOCK: '0' }).acceptClock, true);
  for (const [text, isOn] of [
    ['1', true],
    ['true', true],
    ['0', false],
    ['false', false],
  ] as const) {
    assert.equal(read([], { LEASEHOLD_ACCEPT_CLOCK: text }).acceptClock, isOn, text);
  }
});

test('relative paths start at the directory in which npm was called', () => {
  const environment = { INIT_CWD: '/home-of/ann' };
  assert.equal(read(['--data-dir', 'vault'], environment).dataDir, '/home-of/ann/vault');
  assert.deepEqual(read(['--listen', 'unix:l.sock'], environment).listen, {
    kind: 'unix',
    path: '/home-of/ann/l.sock',
  });
});

/** Texts that the flag rejects, between bars. */
const MISTAKES: Readonly<Record<string, string>> = {
  listen:
    '|7700|:7700|localhost|localhost:|localhost:http|127.0.0.1:65536|127.0.0.1:-1|127.0.0.1:0x1|::1:7700|[::1]|[::1:7700|[localhost]:1|http://127.0.0.1:1|127.0.0.1:1/|a b:1|unix|tcp:1:2',
  'admin-retrieve': '|no|true|Deny|deny ',
  'versions-kept': '|0|-1|1001|1.5|1e2|0x10|ten|10 |99999999999',
  'trusted-proxy':
    'proxy.example|10.0.0.0/33|10.0.0.1,nonsense|::g|10.0.0.1/x|0.0.0.0/0|::/0|10.0.0.1,0.0.0.0/00|10.0.0.0/|10.0.0.0/255.0.0.0|fe80::1%eth0|loopback',
  'public-name': 'http://vault|*|va ult|*.example|vault:7700|vault/|-a|a-|a..b|a.|a_b|ä|a.example,*',
  'target-networks': '|any|10.0.0.1|10.0.0.0/33|10.0.0.0/8,|none,10.0.0.0/8|fe80::%1/10|::/08',
  'log-level': '|trace|INFO|verbose',
  'accept-clock': 'yes',
  'insecure-http': 'on',
};

for (const [flag, mistakes] of Object.entries(MISTAKES)) {
  test(`--${flag} rejects ${mistakes}, also from the environment, with one line that names it`, () => {
    for (const text of mistakes.split('|')) {
      const isMistake = (error: unknown): boolean =>
        error instanceof UsageError && error.message.includes(`--${flag}`) && !error.message.includes('\n');
      assert.throws(() => readConfiguration([`--${flag}=${text}`], {}), isMistake, text);
      assert.throws(() => readConfiguration([], { [variable(flag)]: text }), isMistake, text);
    }
  });
}

test('the URL of another service is HTTPS, or HTTP on this machine', () => {
  const FLAGS = ['transit-address', 'aws-kms-endpoint', 'oidc-issuer', 'approval-webhook', 'log-stream'];
  const URLS = [
    'http://other.example',
    'http://127.0.0.1.example',
    'http://10.0.0.1',
    'http://[::2]',
    'ws://localhost',
  ];
  const others = ['--oidc-client-id=leasehold', '--approval-webhook-secret-file=secret'];
  for (const flag of FLAGS)
    for (const url of URLS) {
      const text = flag === 'log-stream' ? `webhook+${url}` : url;
      const required = others.filter((each) => each.startsWith(`--${flag.split('-')[0]}`));
      const isMistake = { name: 'UsageError', message: new RegExp(`^--${flag}[: ].*(?:https|http is)`) };
      assert.throws(() => readConfiguration([`--${flag}=${text}`, ...required], {}), isMistake, `${flag} ${url}`);
    }
});

test('the URL of the identity provider has the form that the rows of operators store', () => {
  const given = (issuer: string) => readConfiguration([`--oidc-issuer=${issuer}`, '--oidc-client-id=leasehold'], {});
  for (const issuer of [
    'https://login.ex\nample',
    ' https://login.example',
    `https://login.example/${'x'.repeat(2048)}`,
  ])
    assert.throws(
      () => given(issuer),
      { name: 'UsageError', message: /^--oidc-issuer must be/ },
      JSON.stringify(issuer),
    );
  assert.equal(given('https://login.example/a')?.oidc?.issuer, 'https://login.example/a');
});

test('the server accepts every network that the configuration accepts', async (t) => {
  const networks = [
    '10.0.0.1',
    '10.0.0.0/1',
    '::1',
    '::/1',
    '2001:db8::/128',
    '::ffff:10.0.0.1',
    '::ffff:10.0.0.0/104',
  ];
  await startTestService(t, ['--trusted-proxy', networks.join()]);
});

test('one TLS file without the other, unknown flags, flags without a value and extra arguments are errors of one line each', () => {
  const calls = [
    ['--tls-cert', 'c'],
    ['--tls-key', 'k'],
    ['--nonsense'],
    ['--nonsense=1'],
    ['-x'],
    ['start'],
    ['--data-dir', 'a', 'b'],
    ['--', 'x'],
    ['--data-dir'],
    ['--data-dir='],
    ['--listen'],
    ['--data-dir', '--listen'],
    ['--versions-kept', '-1'],
    ['--accept-clock=1=1'],
    [''],
  ];
  for (const flags of calls) {
    assert.throws(
      () => readConfiguration(flags, {}),
      (error) => error instanceof UsageError && !/\n/.test(error.message) && error.message.length > 10,
      flags.join(' '),
    );
  }
});

test('an empty variable is rejected by name, like an empty flag', () => {
  for (const flag of ['data-dir', 'root-key-file', 'listen']) {
    assert.throws(() => readConfiguration([], { [variable(flag)]: '' }), {
      name: 'UsageError',
      message: `${variable(flag)} is empty: give it a value as for --${flag}, or unset it`,
    });
  }
});

test('flags that npm took are an error', () => {
  assert.throws(() => readConfiguration([], { npm_config_data_dir: '/srv/vault' }), {
    message: 'npm kept --data-dir for itself: put -- before the flags, as in npm start -- --data-dir …',
  });
});

test('--help lists every flag with variable and default in 80 columns', () => {
  let output = '';
  assert.equal(
    readConfiguration(['--help'], {}, (text) => (output += text)),
    null,
  );
  assert.deepEqual(
    output.split('\n').filter((line) => line.length > 80),
    [],
  );
  const text = output.replaceAll(/\s+/g, ' ');
  for (const [name, { variable, byDefault }] of Object.entries<Flag>(SERVER_FLAGS)) {
    for (const part of [`--${name} `, variable, byDefault])
      if (part !== undefined) assert.ok(text.includes(part), `${name}: ${part}`);
  }
  assert.equal(readConfiguration(['-h'], {}), null);
});

test('docs/configuration.md is that of the flags; if not, run node scripts/launch.mjs scripts/configuration-page.ts', () => {
  assert.equal(readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8'), configurationPage());
});

test('unusable files give one line: invalid TLS files, a file as data directory', async (t) => {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'a'));
  const tls = ['--tls-cert', join(directory, 'none.pem'), '--tls-key', join(directory, 'none.pem')];
  const notTls = ['--tls-cert', import.meta.filename, '--tls-key', import.meta.filename];
  const unusable: readonly (readonly [dataDir: string, ...flags: string[]])[] = [
    [join(directory, 'b'), ...tls],
    [join(directory, 'c'), ...notTls],
    [import.meta.filename],
    [join(directory, 'a'), '--admin-token-file', join(directory, 'none')],
    [join(directory, 'd'), '--root-key-file', directory],
  ];
  for (const [dataDir, ...flags] of unusable) {
    await assert.rejects(startTestService(t, flags, dataDir), { message: /^[^\n]{20,}$/ });
  }
});

/** Empty if the variable is accepted. */
function refusal(name: string): string {
  try {
    readConfiguration([], { [name]: 's3cret' });
    return '';
  } catch (error) {
    assert.ok(error instanceof UsageError);
    return error.message;
  }
}

test('the error for a misspelt variable names the nearest one, and never repeats its value', () => {
  assert.equal(
    refusal('LEASEHOLD_ADMIN_RETRIEV'),
    'LEASEHOLD_ADMIN_RETRIEV is not a setting. Did you mean LEASEHOLD_ADMIN_RETRIEVE?',
  );
  assert.equal(refusal('LEASEHOLD_LISTENS'), 'LEASEHOLD_LISTENS is not a setting. Did you mean LEASEHOLD_LISTEN?');
  for (const name of ['LEASEHOLD_NONSENSE', 'LEASEHOLD_', 'LEASEHOLD_PORT', 'LEASEHOLD_listen']) {
    assert.match(refusal(name), new RegExp(`^${name} is not a setting\\. .+[.?]$`));
    assert.equal(refusal(name).includes('s3cret'), false);
  }
  assert.equal(refusal('LEASEHOLDERS'), '');
});

test('variables that Kubernetes sets for a Service of this name are accepted', () => {
  const address = 'tcp://10.0.0.1:7700';
  readConfiguration([], {
    LEASEHOLD_SERVICE_HOST: '10.0.0.1',
    LEASEHOLD_SERVICE_PORT: '7700',
    LEASEHOLD_SERVICE_PORT_HTTP: '7700',
    LEASEHOLD_PORT: address,
    LEASEHOLD_PORT_7700_TCP: address,
    LEASEHOLD_PORT_7700_TCP_PROTO: 'tcp',
    LEASEHOLD_PORT_7700_TCP_PORT: '7700',
    LEASEHOLD_PORT_7700_TCP_ADDR: '10.0.0.1',
  });
});

test('every variable that sources and pages name is known', () => {
  const found = globSync(['src/**/*.ts', 'scripts/*', 'deploy/**/*', 'docs/*.md', 'README.md'], { cwd: ROOT });
  const files = found.map((name) => join(ROOT, name)).filter((file) => statSync(file).isFile());
  const text = files.map((file) => readFileSync(file, 'utf8')).join('\n');
  // Misspelt examples, and variables of other programs.
  const names = new Set(text.match(/\bLEASEHOLD_[A-Z][A-Z_]*[A-Z]\b/g)).difference(
    new Set(['LEASEHOLD_ADMIN_RETRIEV']),
  );
  assert.ok(names.size > 15);
  for (const name of names) rejectUnknownVariables({ [name]: '' }, SERVER_FLAGS);
});
