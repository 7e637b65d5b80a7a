/**
 * The web console under `/console/`: static files, and the same page for every other path below it, because the console
 * routes in the browser. Served in every state of the server, so that the page can show a locked vault. It decides
 * nothing: all data comes through the HTTP API. SOURCE: docs/console.md.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../engine/errors.ts';
import type { RequestMeasures } from './request-measures.ts';
import { routingError } from './routes/route-table.ts';

const CONSOLE_PREFIX = '/console/';

/** The console routes in the browser, so the paths of its pages may contain any encoding. */
export const isConsolePage = (target: string): boolean => target.startsWith(CONSOLE_PREFIX);

/**
 * WHY `trusted-types 'none'`: no script may turn text into markup or code, so that a name which an attacker chose stays
 * text. Style attributes in markup are excluded too; scripts set styles through the object model.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy':
    'publickey-credentials-get=(self), publickey-credentials-create=(self), clipboard-write=(self), camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
};

const NOT_BUILT = 'The console is not built. Run npm start, which builds it, or npm run build.';
const YEAR_SECONDS = 31_536_000;

export function addConsole(app: FastifyInstance, measures: RequestMeasures, readFiles = installedConsole): void {
  const config = { measures: measures.of('GET', `${CONSOLE_PREFIX}*`), permission: null, isAlwaysServed: true };
  app.route({
    method: 'GET',
    url: `${CONSOLE_PREFIX}*`,
    config,
    handler(request, reply) {
      const files = readFiles();
      if (files === null) throw new ApiError('NOT_FOUND', NOT_BUILT);
      const { '*': name = '' } = request.params as Record<string, string | undefined>;
      const file = files.get(name);
      if (file !== undefined) return sendFile(file, request, reply);
      const index = files.get(INDEX);
      // A missing asset is an error: the page in its place would be run as a script.
      if (index === undefined || name.startsWith('assets/'))
        throw new ApiError('NOT_FOUND', 'The console has no such file.');
      return sendFile(index, request, reply);
    },
  });
  app.route({ method: 'GET', url: '/console', config, handler: redirect });
  app.route({
    method: 'GET',
    url: '/',
    config,
    handler(request, reply) {
      // A program that requests the root receives the error that names the HTTP API.
      if (!(request.headers.accept ?? '').includes('text/html')) throw routingError(request.url, reply);
      return redirect(request, reply);
    },
  });
}

function redirect(_request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.code(302).header('location', CONSOLE_PREFIX).send();
}

function sendFile(file: ConsoleFile, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { etag } = file;
  reply.headers({ ...HEADERS, vary: 'accept-encoding' });
  // WHY the page is not cached: it names the assets, and it is smaller than the request that would validate it.
  if (etag !== null) reply.headers({ etag, 'cache-control': `public, max-age=${YEAR_SECONDS}, immutable` });
  if (etag !== null && request.headers['if-none-match'] === etag) return reply.code(304).send();
  const encoding = chooseEncoding(file, request.headers['accept-encoding']);
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  return reply.type(file.type).send(file.bytes[encoding] ?? file.bytes.identity);
}

// The built console in memory: a closed map from the path of a URL to a file. INVARIANT: no request reaches the file
// system, so no path can leave the directory; a file that was not there when the map was read does not exist.

type Encoding = 'br' | 'gzip' | 'identity';

export interface ConsoleFile {
  readonly type: string;
  /** Null for a file whose name does not contain the hash of its content. */
  readonly etag: string | null;
  readonly bytes: Readonly<Partial<Record<Encoding, Uint8Array>>> & { readonly identity: Uint8Array };
}

export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

const INDEX = 'index.html';
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

/** The directories of the built console: the first in a checkout, the second in the package. */
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
