/** The output of `npm run build` in a separate directory, built once per test file. */
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, type Source, toSource } from '../conventions/source.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';

/** The directory used as dist/. */
export function buildInto(scope: Scope): string {
  const dist = join(temporaryDirectory(scope), 'dist');
  execFileSync(process.execPath, [join(ROOT, 'scripts/build.ts'), '--out', dist], { stdio: 'pipe' });
  return dist;
}

/** Its files whose names end so, named from the directory. */
export function readBuilt(dist: string, ending: string): Source[] {
  return globSync(`**/*${ending}`, { cwd: dist })
    .sort()
    .map((name) => toSource(name, readFileSync(join(dist, name), 'utf8')));
}
