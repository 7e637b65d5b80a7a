/**
 * Reads all secrets of a KV v2 mount of Vault or OpenBao: each field under PATH/FIELD, or PATH when the only field is
 * `value`. The HTTP client sends the token to the configured address only.
 * SOURCE: developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2, openbao.org/api-docs/secret/kv/kv-v2.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { LeaseholdError } from '../../client/errors.ts';
import { safeFetch } from '../../client/node-fetch.ts';
import { readText } from '../../client/read-response.ts';
import { parseServerUrl } from '../../client/server-url.ts';
import { errnoSuffix, UsageError } from '../../platform/errors.ts';
import { inParallel } from '../../platform/waiting.ts';
import type { Secret } from '../../vault/credentials/credential.ts';
import { RemoteError } from '../errors.ts';
import { addJson, isObject, type JsonObject, objectOf, parseJson } from './json.ts';
import { type ImportSource, Reader } from './source.ts';

interface Kv2Options {
  /** The URL without a trailing slash, as `parseVaultAddress` returns it. */
  readonly address: string;
  readonly token: Secret;
  readonly namespace: string | null;
  readonly mount: string;
}

type Version = { readonly data: JsonObject } | { readonly missing: string; readonly isRejected: boolean };

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
const MAX_ATTEMPTS = 4;
const BACKOFF_MS = 250;
const TIMEOUT_MS = 30_000;
/** Statuses of an overloaded or starting node, or of a proxy in front of it. */
const TRANSIENT: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const ADDRESS_HINT =
  'Check that --vault-addr is the address of Vault or OpenBao, and that no proxy responds in its place.';
const MOUNT_HINT = 'Check that the mount is a KV engine of version 2.';

/** @throws UsageError when the URL is invalid, or is plain HTTP to another machine, which would expose every secret */
export function parseVaultAddress(text: string): string {
  try {
    return parseServerUrl(text, false);
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    throw new UsageError(
      '--vault-addr: must be https://HOST:PORT, or http:// to this machine, without user, password and query',
    );
  }
}

export class Kv2 {
  readonly #options: Kv2Options;

  constructor(options: Kv2Options) {
    this.#options = options;
  }

  /** The path of a secret or a directory, for messages. */
  locationOf(path: readonly string[]): string {
    return `${this.#options.mount}/${path.join('/')}`;
  }

  /**
   * The keys directly below a directory, directories with a trailing slash; null when the token may not list it.
   * @throws RemoteError
   */
  async list(directory: readonly string[], signal: AbortSignal): Promise<readonly string[] | null> {
    const { status, body } = await this.#request('metadata', [...directory, ''], '?list=true', signal);
    if (status === 403) return null;
    if (status === 404) return [];
    const keys = objectOf(body, 'data')?.['keys'];
    if (!Array.isArray(keys)) throw new RemoteError('the response to a list is not from a KV v2 mount', MOUNT_HINT);
    return keys.filter((key) => typeof key === 'string');
  }

  /** The newest version of a secret. @throws RemoteError */
  async read(path: readonly string[], signal: AbortSignal): Promise<Version> {
    const { status, body } = await this.#request('data', path, '', signal);
    if (status === 403) return { missing: 'the token is not allowed to read it', isRejected: true };
    const version = objectOf(body, 'data') ?? {};
    const data = objectOf(version, 'data');
    if (data !== null) return { data };
    // SOURCE: the response for a deleted or destroyed version is 404 with its metadata, and null for data.
    const isKnown = objectOf(version, 'metadata') !== null;
    return { missing: isKnown ? 'its newest version was deleted' : 'it no longer exists', isRejected: false };
  }

  async #request(kind: 'metadata' | 'data', path: readonly string[], query: string, signal: AbortSignal) {
    const { address, mount } = this.#options;
    const segments = [...mount.split('/'), kind, ...path].map(encodeURIComponent);
    for (let attempt = 1; ; attempt++) {
      const { status, body } = await this.#send(`${address}/v1/${segments.join('/')}${query}`, signal);
      if (status === 200 || status === 404 || status === 403) return { status, body };
      if (!TRANSIENT.has(status) || attempt === MAX_ATTEMPTS) throw statusError(status);
      await pause(BACKOFF_MS * 2 ** (attempt - 1), undefined, { signal });
    }
  }

  /** `body` is empty unless the status is 200 or 404. */
  async #send(url: string, signal: AbortSignal): Promise<{ status: number; body: JsonObject }> {
    const { token, namespace } = this.#options;
    try {
      const response = await safeFetch(url, {
        headers: {
          'x-vault-token': token.reveal(),
          'x-vault-request': 'true',
          ...(namespace === null ? {} : { 'x-vault-namespace': namespace }),
        },
        // The token must not be sent to another address.
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      const { status } = response;
      const isParsed = status === 200 || status === 404;
      // Strict, because a value with replacement characters would be stored without an error.
      const { text } = await readText(response, MAX_RESPONSE_BYTES, isParsed);
      return { status, body: isParsed ? parse(text) : {} };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RemoteError) throw error;
      if (error instanceof LeaseholdError) throw new RemoteError(error.message, ADDRESS_HINT);
      const { name, cause, code } = error as NodeJS.ErrnoException;
      if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA')
        throw new RemoteError('the response of Vault is not text in UTF-8', ADDRESS_HINT);
      throw new RemoteError(
        `no response from ${this.#options.address}${errnoSuffix(cause) || ` (${name})`}`,
        'The address is from --vault-addr, VAULT_ADDR or BAO_ADDR. Check that Vault or OpenBao runs there and that its certificate is trusted (NODE_EXTRA_CA_CERTS).',
      );
    }
  }
}

/** Invalid JSON is a usage error in a file, but a remote error in a response. */
function parse(text: string): JsonObject {
  try {
    const body = parseJson(text, 'the response of Vault');
    if (isObject(body)) return body;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
  }
  throw new RemoteError('the response is not from Vault or OpenBao', ADDRESS_HINT);
}

const STATUS_HINTS: Readonly<Record<number, string>> = {
  307: 'Redirects are not followed. A standby node redirects; use the address of the active node.',
  400: MOUNT_HINT,
  503: 'Vault is sealed or under maintenance: check it with vault status, then run the same command again.',
};

/** WHY without the body: it is untrusted text, and the status is sufficient. */
function statusError(status: number): RemoteError {
  const hint = STATUS_HINTS[status] ?? 'See the log of Vault, then run the same command again.';
  return new RemoteError(`Vault responded with status ${status}`, hint);
}

const MAX_CONCURRENT = 8;
/** The limit of a path in the vault. It also ends an endless listing by a hostile server. */
const MAX_LEVELS = 32;
const MAX_KEYS = 100_000;

interface WalkOptions {
  readonly below: readonly string[];
  readonly signal: AbortSignal;
  progress(done: number, of: number): void;
}

/**
 * @throws RemoteError when the mount cannot be listed or its response is invalid; UsageError when it has too many
 * secrets
 */
export async function readKv2(kv2: Kv2, options: WalkOptions): Promise<ImportSource> {
  const reader = new Reader();
  const secrets = await listAll(kv2, reader, options);
  const read = new Map<readonly string[], JsonObject>();
  let done = 0;
  const readOne = async (path: readonly string[]): Promise<void> => {
    const version = await kv2.read(path, options.signal);
    if ('data' in version) read.set(path, version.data);
    else reader.skip(kv2.locationOf(path), version.missing, version.isRejected ? 'rejected' : 'empty');
    options.progress(++done, secrets.length);
  };
  await inParallel(secrets, MAX_CONCURRENT, readOne, options.signal);
  // Values are in the order of their paths, not of the responses.
  for (const path of secrets) addSecret(reader, path, read.get(path), kv2.locationOf(path));
  return reader;
}

async function listAll(kv2: Kv2, reader: Reader, options: WalkOptions): Promise<readonly (readonly string[])[]> {
  const secrets: (readonly string[])[] = [];
  let keys = 0;
  let deeper: (readonly string[])[] = [];
  const listOne = async (directory: readonly string[]): Promise<void> => {
    const names = await kv2.list(directory, options.signal);
    if (directory === options.below && !names?.length) throw nothingToList(names === null, kv2.locationOf(directory));
    if (names === null) reader.skip(`${kv2.locationOf(directory)}/`, 'the token is not allowed to list it');
    for (const name of new Set(names)) {
      keys += 1;
      if (keys > MAX_KEYS)
        throw new UsageError(
          `the mount has more than ${MAX_KEYS} secrets; import one directory at a time with --below`,
        );
      const isDirectory = name.endsWith('/');
      const path = [...directory, isDirectory ? name.slice(0, -1) : name];
      if (/^\.{0,2}\/?$/.test(name) || !name.isWellFormed())
        reader.skip(kv2.locationOf(path), 'its name cannot be requested');
      else if (path.length > MAX_LEVELS) reader.skip(kv2.locationOf(path), `it is deeper than ${MAX_LEVELS} levels`);
      else (isDirectory ? deeper : secrets).push(path);
    }
  };
  for (let level: readonly (readonly string[])[] = [options.below]; level.length > 0; level = deeper) {
    deeper = [];
    await inParallel(level, MAX_CONCURRENT, listOne, options.signal);
  }
  return secrets.sort((one, other) => (one.join('/') < other.join('/') ? -1 : 1));
}

function nothingToList(isForbidden: boolean, location: string): RemoteError {
  if (!isForbidden) return new RemoteError(`nothing was found at ${location}`, `${MOUNT_HINT} Check VAULT_NAMESPACE.`);
  const hint = 'It may have expired; its policy needs list on metadata/.';
  return new RemoteError(`the token is not allowed to list ${location} (403)`, hint);
}

function addSecret(reader: Reader, path: readonly string[], data: JsonObject | undefined, location: string): void {
  if (data === undefined) return;
  const { value, ...others } = data;
  const isValueOnly = value !== undefined && !isObject(value) && Object.keys(others).length === 0;
  addJson(reader, path, isValueOnly ? value : data, location);
}
