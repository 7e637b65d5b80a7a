// `npm run build` creates dist/, which the package contains instead of src/: Node strips no types below node_modules.
// It builds in a temporary directory, which then replaces the previous output. `--out DIR` names another target.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { CONSOLE_OUTPUT, CONSOLE_STAMP } from './console-state.mjs';

const ROOT = path.resolve(import.meta.dirname, '..');
const SRC = path.join(ROOT, 'src');
const CONSOLE_BUILD = path.join(ROOT, 'scripts', 'build-console.ts');
const TSC = path.join(ROOT, 'node_modules', '.bin', 'tsc');

function build(out: string): void {
  const directory = `${out}.${process.pid}`;
  // ORDER: a directory that cannot be created ends the build before its work.
  mkdirSync(directory);
  try {
    execFileSync(process.execPath, [TSC, '--project', 'tsconfig.build.json', '--outDir', directory], {
      cwd: ROOT,
      stdio: ['ignore', 2, 2],
    });
    // Migrations are read at run time from the directory of their program.
    cpSync(SRC, directory, {
      recursive: true,
      filter: (file) => statSync(file).isDirectory() || !file.endsWith('.ts'),
    });
    execFileSync(process.execPath, [CONSOLE_BUILD], { cwd: ROOT, stdio: ['ignore', 2, 2] });
    cpSync(CONSOLE_OUTPUT, path.join(directory, 'console'), {
      recursive: true,
      filter: (file) => path.basename(file) !== CONSOLE_STAMP,
    });
    rmSync(out, { recursive: true, force: true });
    renameSync(directory, out);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const { values } = parseArgs({ options: { out: { type: 'string', default: path.join(ROOT, 'dist') } } });
try {
  build(path.resolve(values.out));
} catch (error) {
  // The program that failed has printed its error.
  if (error instanceof Error && !('status' in error)) console.error(error.message);
  process.exitCode = 1;
}
