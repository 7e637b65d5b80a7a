/**
 * The built console in memory: a closed map from the path of a URL to a file. INVARIANT: no request reaches the file
 * system, so no path can leave the directory; a file that was not there when the map was read does not exist.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

type Encoding = 'br' | 'gzip' | 'identity';

export interface ConsoleFile {
  readonly type: string;
  /** Null for a file whose name does not contain the hash of its content. */
  readonly etag: string | null;
  readonly bytes: Readonly<Partial<Record<Encoding, Uint8Array>>> & { readonly identity: Uint8Array };
}

/** By the path after `/console/`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

export const INDEX = 'index.html';
/** Larger builds are rejected: the files stay in memory. */
const MAX_FILES = 300;
const MAX_BYTES = 16 * 1024 * 1024;
const SUFFIXES = { br: '.br', gzip: '.gz' } as const;
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

/** Where the build puts the console: in a checkout next to the sources, in the package next to the programs. */
const DIRECTORIES = ['../../console/dist', '../console'].map((name) => path.resolve(import.meta.dirname, name));

let known: ConsoleFiles | null = null;

/** The files of this installation; null if the console is not built. Read by the first request that finds them. */
export function installedConsole(): ConsoleFiles | null {
  const directory = DIRECTORIES.find((name) => existsSync(path.join(name, INDEX)));
  if (known === null && directory !== undefined) known = readConsole(directory);
  return known;
}

/** @throws Error for a directory that is too large */
export function readConsole(directory: string): ConsoleFiles {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  if (entries.length > MAX_FILES) throw new Error(`the console has more than ${MAX_FILES} files`);
  const contents = new Map<string, Uint8Array>();
  let total = 0;
  for (const entry of entries) {
    const file = path.join(entry.parentPath, entry.name);
    const bytes = readFileSync(file);
    total += bytes.length;
    if (total > MAX_BYTES) throw new Error(`the console has more than ${MAX_BYTES} bytes`);
    contents.set(path.relative(directory, file).split(path.sep).join('/'), bytes);
  }
  const files = new Map<string, ConsoleFile>();
  for (const [name, identity] of contents) {
    const type = TYPES[path.extname(name)];
    if (type === undefined) continue;
    const [br, gzip] = [contents.get(name + SUFFIXES.br), contents.get(name + SUFFIXES.gzip)];
    files.set(name, {
      type,
      etag: name.startsWith('assets/') ? `"${path.basename(name)}"` : null,
      bytes: { identity, ...(br === undefined ? {} : { br }), ...(gzip === undefined ? {} : { gzip }) },
    });
  }
  return files;
}

/**
 * The smallest representation that the client accepts; weights other than 0 count as 1. SOURCE: RFC 9110, section
 * 12.5.3.
 */
export function chooseEncoding({ bytes }: ConsoleFile, accepted: string | undefined): Encoding {
  const words = (accepted ?? '').split(',').map((word) => word.trim().toLowerCase());
  const accepts = (encoding: string): boolean =>
    words.some((word) => {
      const [name = '', ...parameters] = word.split(';').map((part) => part.trim());
      return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
    });
  if (bytes.br !== undefined && accepts('br')) return 'br';
  return bytes.gzip !== undefined && accepts('gzip') ? 'gzip' : 'identity';
}
