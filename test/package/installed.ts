/**
 * The package as npm packs it, in a user's project, with its dependencies: the packages of the lock file that are not
 * for development. WHY not an install from the registry: a test must not need the network. npm packs, and links the
 * command.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { ROOT, type Source, toSource } from '../conventions/source.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';

/** The output of `npm run build`: the directory that is used as dist/. */
export function buildInto(scope: Scope): string {
  const dist = join(temporaryDirectory(scope), 'dist');
  execFileSync(process.execPath, [join(ROOT, 'scripts/build.ts'), '--out', dist], { stdio: 'pipe' });
  return dist;
}

/** The built files whose names have the ending, named from the directory. */
export function readBuilt(dist: string, ending: string): Source[] {
  return globSync(`**/*${ending}`, { cwd: dist })
    .sort()
    .map((name) => toSource(name, readFileSync(join(dist, name), 'utf8')));
}

export interface Project {
  readonly directory: string;
  /** The package there. */
  readonly installed: string;
  /** The command, as npm links it. */
  readonly command: string;
  /** The environment of a new user: an empty home, and no settings of this machine. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs npm in the project, or in another directory; returns its output. */
  npm(words: readonly string[], directory?: string): string;
}

export function installPackage(scope: Scope, dist: string): Project {
  const directory = temporaryDirectory(scope);
  const environment = {
    // Programs are looked up, and this Node is to be the one that is found.
    PATH: [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter),
    HOME: temporaryDirectory(scope),
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
  };
  const npm = (words: readonly string[], cwd = directory): string => {
    const cli = process.env['npm_execpath'] ?? '';
    const [program, ...first] = /^npm(-cli)?\.c?js$/.test(basename(cli)) ? [process.execPath, cli] : ['npm'];
    return execFileSync(program ?? 'npm', [...first, ...words], { cwd, env: environment, encoding: 'utf8' });
  };
  const tarball = pack(scope, dist, npm);
  const installed = join(directory, 'node_modules', 'leasehold');
  placeDependencies(directory);
  mkdirSync(installed);
  execFileSync('tar', ['xzf', tarball, '-C', installed, '--strip-components=1']);
  writeFileSync(
    join(directory, 'package.json'),
    JSON.stringify({ name: 'somebodys', private: true, type: 'module', dependencies: { leasehold: '*' } }),
  );
  npm(['rebuild', '--ignore-scripts']);
  return { directory, installed, command: join(directory, 'node_modules', '.bin', 'leasehold'), environment, npm };
}

/** The path of the file that `npm pack` creates from the checkout with the build. */
function pack(scope: Scope, dist: string, npm: Project['npm']): string {
  const staged = temporaryDirectory(scope);
  const { files }: { files: readonly string[] } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const named = [...files.filter((name) => name !== 'dist'), 'package.json', 'README.md', 'LICENSE'];
  for (const name of globSync(named, { cwd: ROOT })) cpSync(join(ROOT, name), join(staged, name), { recursive: true });
  cpSync(dist, join(staged, 'dist'), { recursive: true });
  return join(staged, npm(['pack', '--ignore-scripts', '--silent'], staged).trim());
}

function placeDependencies(directory: string): void {
  interface Locked {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly link?: boolean }>>;
  }
  const { packages }: Locked = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  for (const [name, { dev = false, link = false }] of Object.entries(packages)) {
    const from = join(ROOT, name);
    // Packages of other platforms are not installed.
    if (name === '' || dev || link || !existsSync(from)) continue;
    const filter = (file: string) => !file.slice(from.length).includes('node_modules');
    cpSync(from, join(directory, name), { recursive: true, filter });
  }
}
