/** The output of `npm run build`: everything that the package needs, and nothing of the machine that built it. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { importsOf, ROOT, resolveImport, type Source, toSource } from '../conventions/source.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { buildInto, readBuilt } from './built.ts';

const dist = buildInto({ after });
const scripts = readBuilt(dist, '.js');
const CLIENT = 'client/leasehold.js';

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
    [...files].filter((name) => !/^(?:client|core)\//.test(name)),
    [],
  );
  assert.ok(files.has('client/transport.js') && files.has('core/errors.js'));
  const broken = [toSource('client/leasehold.js', `import './a.js';`), toSource('client/a.js', `import('node:fs');`)];
  assert.deepEqual(graphOf(CLIENT, broken).strangers, ['client/a.js imports node:fs']);
});

test('a build replaces the previous one atomically, and a failed one leaves it unchanged', (t) => {
  const directory = temporaryDirectory(t);
  const out = join(directory, 'dist');
  mkdirSync(out);
  writeFileSync(join(out, 'stale.js'), '');
  execFileSync(process.execPath, [join(ROOT, 'scripts/build.ts'), '--out', out], { stdio: 'pipe' });
  assert.equal(existsSync(join(out, 'stale.js')), false);
  assert.ok(existsSync(join(out, CLIENT)));
  const failed = spawnSync(process.execPath, [join(ROOT, 'scripts/build.ts'), '--out', join(out, CLIENT, 'below')]);
  assert.notEqual(failed.status, 0);
  assert.deepEqual(readdirSync(directory), ['dist']);
});

test('every thread that a program of dist starts is a program of dist', () => {
  const threads = scripts
    .filter(({ code }) => code.includes('new Worker('))
    .map(({ name, text }) => {
      const [, thread = 'nothing'] =
        /new Worker\(new URL\(`(\.\/[\w-]+)\$\{extname\(import\.meta\.url\)\}`/.exec(text) ?? [];
      return `${join(dirname(name), thread)}.js`;
    });
  assert.deepEqual(threads, ['store/sqlite/checkpoint-worker.js', 'vault/verification/worker.js']);
  for (const thread of threads) assert.ok(existsSync(join(dist, thread)), thread);
});
