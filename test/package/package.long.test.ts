/**
 * The package: the output of the build, with nothing of the machine that built it, and a user's project that installs
 * it: the command reads little, the service runs, and the library is imported.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { importsOf, ROOT, resolveImport, type Source, toSource } from '../conventions/source.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { childrenOf } from '../kit/processes.ts';
import { buildInto, installPackage, readBuilt } from './installed.ts';

const CLIENT = 'client/leasehold.js';

const dist = buildInto({ after });
const scripts = readBuilt(dist, '.js');
const project = installPackage({ after }, dist);
/** The program that `scripts/leasehold` starts, for a Node that the test chooses. */
const launcher = join(project.installed, 'scripts/leasehold.mjs');

/** The file, all its imports, and the imported packages and Node modules. */
function graphOf(entry: string, sources: readonly Source[]) {
  const files = new Set<string>();
  const strangers: string[] = [];
  const walk = (name: string): void => {
    const source = sources.find((other) => other.name === name);
    assert.ok(source !== undefined, `${name} is not there`);
    if (files.has(name)) return;
    files.add(name);
    for (const { specifier = 'something computed' } of importsOf(source)) {
      if (specifier.startsWith('.')) walk(resolveImport(source, specifier));
      else strangers.push(`${name} imports ${specifier}`);
    }
  };
  walk(entry);
  return { files, strangers };
}

test('every file of src has its program and its types in dist, and other files are where the programs read them', () => {
  const wanted = globSync('**/*', { cwd: join(ROOT, 'src'), withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(ROOT, 'src').length + 1))
    .flatMap((name) =>
      name.endsWith('.ts') ? [name.replace(/\.ts$/, '.js'), name.replace(/\.ts$/, '.d.ts')] : [name],
    );
  assert.ok(wanted.includes('store/migrations/sqlite/0001_vault.sql'));
  const made = globSync('**/*.*', { cwd: dist }).filter((name) => !name.startsWith('console/'));
  const ofConsole = globSync('console/**/*.*', { cwd: dist }).map((name) => name.replace(/-[\w-]{8}\./, '.'));
  for (const name of ['console/index.html', 'console/assets/index.js.br', 'console/assets/index.css']) {
    assert.ok(ofConsole.includes(name), name);
  }
  assert.deepEqual(made.sort(), wanted.sort());
  for (const name of wanted.filter((each) => each.endsWith('.sql'))) {
    assert.deepEqual(readFileSync(join(dist, name)), readFileSync(join(ROOT, 'src', name)), name);
  }
});

test('no program of dist names a TypeScript file, in an import or an address', () => {
  const namesOne = ({ literals }: Source): string[] => literals.filter((literal) => /^\.{0,2}\/.*\.ts$/.test(literal));
  assert.deepEqual(namesOne(toSource('a.js', `new Worker(new URL('./b.ts', import.meta.url))`)), ['./b.ts']);
  assert.deepEqual(scripts.flatMap(namesOne), []);
});

test('dist contains no path of the build machine, and no source map names a file outside of the package', () => {
  for (const { name, text, literals } of [...scripts, ...readBuilt(dist, '.d.ts')]) {
    assert.deepEqual(
      literals.filter((literal) => literal.includes(ROOT)),
      [],
      name,
    );
    assert.doesNotMatch(text, /sourceMappingURL/, name);
  }
});

test('the client library needs only its own files: no package and no Node module', () => {
  const { files, strangers } = graphOf(CLIENT, scripts);
  // A key file, a Unix socket and a private certificate authority need Node: getBuiltinModule, never an import.
  const needNode = ['client/node-fetch.js', 'client/signers.js'];
  assert.deepEqual([...new Set(strangers.map((line) => line.split(' ')[0]))].toSorted(), needNode);
  for (const wanted of needNode) {
    const code = scripts.find(({ name }) => name === wanted)?.code ?? 'import(';
    assert.doesNotMatch(code, /\bimport\s*\(|from 'node:/);
  }
  assert.deepEqual(
    [...files].filter((name) => !/^(?:client|engine|core|vault)\//.test(name)),
    [],
  );
  assert.ok(files.has('client/transport.js') && files.has('engine/errors.js'));
  const broken = [toSource('client/leasehold.js', `import './a.js';`), toSource('client/a.js', `import('node:fs');`)];
  assert.deepEqual(graphOf(CLIENT, broken).strangers, ['client/a.js imports node:fs']);
});

function node(words: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const env = { ...project.environment, ...more };
  return spawnSync(process.execPath, words, { cwd: project.directory, env, encoding: 'utf8' });
}

test('the package contains what it needs to run and to be read, and no development files', () => {
  const names = globSync('**/*', { cwd: project.installed });
  for (const name of ['README.md', 'LICENSE', 'SECURITY.md', 'docs/api.md', 'scripts/verify_audit.py']) {
    assert.ok(names.includes(name), name);
  }
  const workshop = names.filter((name) => /^(?:src|test|bench|node_modules)\b|\.test\.|install\.mjs/.test(name));
  assert.deepEqual(workshop, []);
});

test('the command starts by its link and by npx, which neither asks nor downloads', () => {
  const { status, stdout, stderr } = node([launcher, '--help']);
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, /^Usage: leasehold COMMAND/m);
  assert.match(node([launcher, 'completion', 'bash']).stdout, /^complete .*-F _leasehold leasehold$/m);
  assert.equal(project.npm(['exec', '--no', '--', 'leasehold', '--help']), stdout);
});

test('leasehold --help reads no package but those of the command line, and few files', (t) => {
  const file = join(temporaryDirectory(t), 'urls');
  const hooks = `data:text/javascript,${encodeURIComponent(`
    import { writeFileSync } from 'node:fs';
    import { registerHooks } from 'node:module';
    const urls = [];
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
    process.on('exit', () => writeFileSync(${JSON.stringify(file)}, JSON.stringify(urls)));`)}`;
  const { status, stderr } = node(['--import', hooks, launcher, '--help']);
  assert.equal(status, 0, stderr);
  const read: string[] = JSON.parse(readFileSync(file, 'utf8'));
  const packages = read.map((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? '');
  const others = [...new Set(packages)].filter((name) => !['', 'leasehold', 'commander'].includes(name));
  assert.deepEqual(others, []);
  // Each takes about a millisecond.
  assert.ok(read.length < 100, `${read.length} files`);
});

test('compiled code is cached only where no other user can write', (t) => {
  const home = temporaryDirectory(t);
  const run = (HOME: string, more = {}) => node([launcher, '--version'], { HOME, TMPDIR: home, ...more }).status;
  assert.equal(run(home), 0);
  assert.deepEqual(globSync('{.cache,.cache/*,*}', { cwd: home }).sort(), ['.cache', '.cache/leasehold']);
  assert.equal(statSync(join(home, '.cache/leasehold')).mode & 0o777, 0o700);

  const open = temporaryDirectory(t);
  mkdirSync(join(open, 'leasehold'));
  spawnSync('chmod', ['777', join(open, 'leasehold')]);
  assert.equal(run(home, { XDG_CACHE_HOME: open }), 0);
  assert.deepEqual(globSync('leasehold/*', { cwd: open }), []);
  assert.equal(run(join(home, 'nowhere')), 0);
  assert.deepEqual(globSync('nowhere', { cwd: home }), []);
});

test('installed programs name their own commands, and not those of npm', () => {
  for (const name of ['server']) {
    const { status, stdout } = node([launcher, name, '--help']);
    assert.equal(status, 0, name);
    assert.match(stdout, new RegExp(`^Usage: leasehold ${name} `, 'm'));
    assert.doesNotMatch(stdout, /npm (?:start|run)/, name);
    const mistaken = node([launcher, name, '--nonsense']);
    assert.doesNotMatch(mistaken.stderr, /npm (?:start|run)/, name);
  }
});

test('the service starts from the package with its tuned flags, and serves the library', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  const words = [launcher, 'server', '--data-dir', dataDir, '--listen', '127.0.0.1:0', '--log-level', 'silent'];
  const service = spawn(process.execPath, words, { cwd: project.directory, env: project.environment });
  t.after(() => service.kill('SIGTERM'));
  const address = await new Promise<string>((resolve, reject) => {
    let printed = '';
    service.stderr.on('data', (chunk) => (printed += chunk));
    service.once('close', () => reject(new Error(printed)));
    service.stdout.on('data', (chunk) => {
      printed += chunk;
      const found = /^ {2}address +(\S+)$/m.exec(printed)?.[1];
      if (found !== undefined && printed.includes('Ctrl-C stops')) resolve(found);
    });
  });
  const limits = childrenOf(service.pid ?? 0).map((pid) => `/proc/${pid}/limits`);
  assert.equal(limits.length, 1);
  for (const file of limits.filter((name) => existsSync(name))) {
    assert.match(readFileSync(file, 'utf8'), /^Max core file size +0 +0 /m, 'a crash leaves no core dump');
  }
  writeFileSync(
    join(project.directory, 'asks.js'),
    `import { readFileSync } from 'node:fs';
     import { Leasehold } from 'leasehold/client';
     const token = readFileSync(process.argv[3], 'utf8').trim();
     const vault = new Leasehold({ address: process.argv[2], token });
     await vault.credentials.store({ path: 'a/b', value: 'zwölf' });
     const { value } = await vault.credentials.retrieve('a/b');
     console.log(String(value), value.reveal(), (await vault.audit.verify()).valid);`,
  );
  const asked = node(['asks.js', address, join(dataDir, 'daemon.token')]);
  assert.equal(asked.stdout, '[secret] zwölf true\n', asked.stderr);
  const ended = new Promise((resolve) => service.once('close', resolve));
  service.kill('SIGTERM');
  assert.equal(await ended, 0);
});

test('nothing but the client library can be imported from the package', () => {
  const { status, stderr } = node(['--input-type=module', '-e', `import 'leasehold/dist/crypto/vault-keys.js'`]);
  assert.equal(status, 1);
  assert.match(stderr, /ERR_PACKAGE_PATH_NOT_EXPORTED/);
});

const USES = `
import { fileSigner, keySigner, Leasehold, LeaseholdError, type LeaseholdOptions, type Retrieved, Secret } from 'leasehold/client';
const options: LeaseholdOptions = { address: 'http://127.0.0.1:7700', agent: { name: 'a', sign: fileSigner('k.pem') }, cache: 3 };
const vault = new Leasehold(options);
const retrieved: Retrieved = await vault.credentials.retrieve('a/b', { ttlSeconds: 5, signal: AbortSignal.timeout(5) });
const text: string = retrieved.value.reveal();
const seconds: number = (await vault.policies.read('x')).max_ttl;
for await (const entry of (await vault.audit.export()).entries) entry.seq.toFixed();
// @ts-expect-error a Secret is no text
const wrong: string = retrieved.value;
// @ts-expect-error no such field
retrieved.valeu;
// @ts-expect-error no such option
await vault.credentials.retrieve('a/b', { ttl: 5 });
export { keySigner, LeaseholdError, Secret, seconds, text, wrong };
`;

test('the library’s types compile under strict checks, without those of Node', () => {
  const compilerOptions = {
    strict: true,
    target: 'esnext',
    module: 'nodenext',
    noEmit: true,
    skipLibCheck: false,
    types: [],
    lib: ['esnext', 'dom', 'dom.iterable', 'dom.asynciterable'],
  };
  writeFileSync(join(project.directory, 'uses.ts'), USES);
  writeFileSync(join(project.directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['uses.ts'] }));
  const { status, stdout } = node([join(ROOT, 'node_modules/.bin/tsc'), '-p', '.']);
  assert.equal(status, 0, stdout);
});
