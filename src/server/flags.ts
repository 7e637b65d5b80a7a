/** Files in the options of the server and its subcommands. */
import { resolve } from 'node:path';
import type { Environment } from '../flags/flag.ts';

/** The absolute path of a file in a flag. npm changes the working directory. */
export function filePath(path: string | undefined, environment: Environment): string | null {
  return path === undefined ? null : resolve(environment['INIT_CWD'] ?? process.cwd(), path);
}
