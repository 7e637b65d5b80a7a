/**
 * A read-only HTTP client for a KV v2 mount of Vault or OpenBao. It sends the token to the configured address only.
 * SOURCE: developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2, openbao.org/api-docs/secret/kv/kv-v2.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { isLoopback } from '../../client/address.ts';
import type { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import { RemoteError } from '../errors.ts';
import { decodeUtf8 } from '../input.ts';
import { type JsonObject, type JsonValue, objectOf, parseJson } from './json.ts';

export interface Kv2Options {
  /** Without a trailing slash, as `parseVaultAddress` returns it. */
  readonly address: string;
  readonly token: Secret;
  readonly namespace: string | null;
  /** The path where the engine is mounted, such as `secret`. */
  readonly mount: string;
}

/** The data of the newest version of a secret, or the reason why it has none. */
export type Version = { readonly data: JsonObject } | { readonly missing: string; readonly isRejected: boolean };

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
const MAX_ATTEMPTS = 4;
const BACKOFF_MS = 250;
const TIMEOUT_MS = 30_000;
/** Statuses of an overloaded or starting node, or of a proxy in front of it. */
const TRANSIENT: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const ADDRESS_HINT =
  'Check that --vault-addr is the address of Vault or OpenBao, and that no proxy responds in its place.';
const MOUNT_HINT = 'Check that the mount is a KV engine of version 2.';

/**
 * @throws UsageError when the URL is invalid, or is plain HTTP to another machine, which would expose the token and
 * every secret
 */
export function parseVaultAddress(text: string): string {
  const url = URL.parse(text);
  const isPlain = url?.protocol === 'http:';
  if (url === null || (!isPlain && url.protocol !== 'https:') || `${url.username}${url.password}${url.search}` !== '') {
    throw new UsageError('--vault-addr: must be https://HOST:PORT without user, password and query');
  }
  if (isPlain && !isLoopback(url.hostname)) {
    throw new UsageError(
      '--vault-addr: plain HTTP to another machine would expose the token and every secret',
      'Use https://, or a tunnel to 127.0.0.1.',
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

export class Kv2 {
  readonly #options: Kv2Options;

  constructor(options: Kv2Options) {
    this.#options = options;
  }

  /**
   * The keys directly below a directory, directories with a trailing slash; null when the token may not list it.
   * @throws RemoteError
   */
  async list(directory: readonly string[], signal: AbortSignal): Promise<readonly string[] | null> {
    const { status, body } = await this.#request('metadata', [...directory, ''], '?list=true', signal);
    if (status === 403) return null;
    if (status === 404) return [];
    const keys = objectOf(expected(body), 'data')?.members.get('keys');
    if (keys?.kind !== 'array') throw new RemoteError('the response to a list is not from a KV v2 mount', MOUNT_HINT);
    return keys.items.flatMap((key) => (key.kind === 'string' ? [key.value] : []));
  }

  /** The newest version of a secret. @throws RemoteError */
  async read(path: readonly string[], signal: AbortSignal): Promise<Version> {
    const { status, body } = await this.#request('data', path, '', signal);
    if (status === 403) return { missing: 'the token is not allowed to read it', isRejected: true };
    const version = body === null ? null : objectOf(body, 'data');
    const data = version === null ? null : objectOf(version, 'data');
    if (data !== null) return { data };
    // SOURCE: the response for a deleted or destroyed version is 404 with its metadata, and null for data.
    const metadata = version === null ? null : objectOf(version, 'metadata');
    const isDestroyed = metadata?.members.get('destroyed')?.text === 'true';
    if (metadata === null) return { missing: 'it no longer exists', isRejected: false };
    return { missing: `its newest version was ${isDestroyed ? 'destroyed' : 'deleted'}`, isRejected: false };
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

  async #send(url: string, signal: AbortSignal): Promise<{ status: number; body: JsonObject | null }> {
    const { token, namespace } = this.#options;
    try {
      const response = await fetch(url, {
        headers: {
          'x-vault-token': token.reveal(),
          'x-vault-request': 'true',
          ...(namespace === null ? {} : { 'x-vault-namespace': namespace }),
        },
        // The token must not be sent to another address.
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      const bytes = await readBounded(response);
      return {
        status: response.status,
        body: response.status === 200 || response.status === 404 ? parse(bytes) : null,
      };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RemoteError) throw error;
      throw new RemoteError(
        `no response from ${this.#options.address} (${reasonOf(error)})`,
        'The address is from --vault-addr, VAULT_ADDR or BAO_ADDR. Check that Vault or OpenBao runs there and that its certificate is trusted (NODE_EXTRA_CA_CERTS).',
      );
    }
  }
}

function parse(bytes: Uint8Array): JsonObject {
  const body = parseResponse(bytes);
  if (body.kind !== 'object') throw new RemoteError('the response is not from Vault or OpenBao', ADDRESS_HINT);
  return body;
}

/** Invalid JSON is a usage error in a file, but a remote error in a response. */
function parseResponse(bytes: Uint8Array): JsonValue {
  try {
    return parseJson(decodeUtf8(bytes, 'the response of Vault'), 'the response of Vault');
  } catch (error) {
    if (error instanceof UsageError) throw new RemoteError(error.message, ADDRESS_HINT);
    throw error;
  }
}

function expected(body: JsonObject | null): JsonObject {
  if (body === null) throw new RemoteError('the response is not from Vault or OpenBao', ADDRESS_HINT);
  return body;
}

async function readBounded({ body }: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MAX_RESPONSE_BYTES) throw new RemoteError('the response of Vault is too large', ADDRESS_HINT);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** WHY without the body: it is untrusted text, and the status is enough. */
function statusError(status: number): RemoteError {
  if (status >= 300 && status < 400) {
    return new RemoteError(
      `Vault responded with a redirect (${status}), which is not followed`,
      'A standby node redirects; use the address of the active node.',
    );
  }
  if (status === 400) return new RemoteError('Vault rejected the request (400)', MOUNT_HINT);
  if (status === 503) {
    return new RemoteError(
      'Vault is sealed or under maintenance (503)',
      'Check it with: vault status. Then run the same command again.',
    );
  }
  return new RemoteError(
    `Vault responded with status ${status}`,
    'See the log of Vault, then run the same command again.',
  );
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return cause instanceof Error ? cause.name : 'unknown reason';
}
