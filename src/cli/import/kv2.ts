/**
 * The HTTP interface of a KV v2 mount in Vault or OpenBao: lists and reads, changes nothing. The token goes to this address alone.
 * SOURCE: developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2, openbao.org/api-docs/secret/kv/kv-v2.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { isLoopback } from '../../client/address.ts';
import type { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import { RemoteError } from '../errors.ts';
import { decodeUtf8 } from '../given-file.ts';
import { type JsonObject, type JsonValue, objectOf, parseJson } from './json.ts';

export interface Kv2Options {
  /** Without a slash at its end, as `parseVaultAddress` gives it. */
  readonly address: string;
  readonly token: Secret;
  readonly namespace: string | null;
  /** Where the engine is mounted, such as `secret`. */
  readonly mount: string;
}

/** What the newest version of a secret is. */
export type Version = { readonly data: JsonObject } | { readonly none: string; readonly isRefused: boolean };

const MOST_ANSWER_BYTES = 16 * 1024 * 1024;
const TRIES = 4;
const PAUSE_MS = 250;
const TIMEOUT_MS = 30_000;
/** Overload, a node that is just coming, a proxy in front of it. */
const PASSING: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const ADDRESS_HINT =
  'Is --vault-addr the address of a Vault or OpenBao, and nothing in between that answers in its place?';
const MOUNT_HINT = 'Is the mount a KV engine of version 2?';

/** @throws UsageError also for plain HTTP to another machine, which would show the token and every secret */
export function parseVaultAddress(text: string): string {
  const url = URL.parse(text);
  const isPlain = url?.protocol === 'http:';
  if (url === null || (!isPlain && url.protocol !== 'https:') || `${url.username}${url.password}${url.search}` !== '') {
    throw new UsageError('--vault-addr: must be https://HOST:PORT, without user, password and query');
  }
  if (isPlain && !isLoopback(url.hostname)) {
    throw new UsageError(
      '--vault-addr: plain HTTP to another machine would show the token and every secret',
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

  /** The keys right below a folder, folders with a slash at their end; null where it may not be listed. @throws Failure */
  async list(folder: readonly string[], signal: AbortSignal): Promise<readonly string[] | null> {
    const { status, body } = await this.#ask('metadata', [...folder, ''], '?list=true', signal);
    if (status === 403) return null;
    if (status === 404) return [];
    const keys = objectOf(expected(body), 'data')?.members.get('keys');
    if (keys?.kind !== 'array') throw new RemoteError('what answered a list is no KV v2 mount', MOUNT_HINT);
    return keys.items.flatMap((key) => (key.kind === 'string' ? [key.value] : []));
  }

  /** The newest version. @throws Failure */
  async read(path: readonly string[], signal: AbortSignal): Promise<Version> {
    const { status, body } = await this.#ask('data', path, '', signal);
    if (status === 403) return { none: 'the token may not read it', isRefused: true };
    const version = body === null ? null : objectOf(body, 'data');
    const data = version === null ? null : objectOf(version, 'data');
    if (data !== null) return { data };
    // SOURCE: what was deleted or destroyed is answered with 404, its metadata, and null for data.
    const metadata = version === null ? null : objectOf(version, 'metadata');
    const isDestroyed = metadata?.members.get('destroyed')?.text === 'true';
    if (metadata === null) return { none: 'it is not there any more', isRefused: false };
    return { none: `its newest version was ${isDestroyed ? 'destroyed' : 'deleted'}`, isRefused: false };
  }

  async #ask(kind: 'metadata' | 'data', path: readonly string[], query: string, signal: AbortSignal) {
    const { address, mount } = this.#options;
    const segments = [...mount.split('/'), kind, ...path].map(encodeURIComponent);
    for (let tried = 1; ; tried++) {
      const { status, body } = await this.#send(`${address}/v1/${segments.join('/')}${query}`, signal);
      if (status === 200 || status === 404 || status === 403) return { status, body };
      if (!PASSING.has(status) || tried === TRIES) throw refusal(status);
      await pause(PAUSE_MS * 2 ** (tried - 1), undefined, { signal });
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
        // Another address must not get the token.
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
        `no answer from ${this.#options.address} (${reasonOf(error)})`,
        'The address is from --vault-addr, VAULT_ADDR or BAO_ADDR. Does Vault or OpenBao run there, and is its certificate trusted (NODE_EXTRA_CA_CERTS)?',
      );
    }
  }
}

function parse(bytes: Uint8Array): JsonObject {
  const body = parseAnswer(bytes);
  if (body.kind !== 'object') throw new RemoteError('what answered is no Vault and no OpenBao', ADDRESS_HINT);
  return body;
}

/** What a person would have to mend in a file, somebody else's service has to mend in an answer. */
function parseAnswer(bytes: Uint8Array): JsonValue {
  try {
    return parseJson(decodeUtf8(bytes, 'an answer of Vault'), 'an answer of Vault');
  } catch (error) {
    if (error instanceof UsageError) throw new RemoteError(error.message, ADDRESS_HINT);
    throw error;
  }
}

function expected(body: JsonObject | null): JsonObject {
  if (body === null) throw new RemoteError('what answered is no Vault and no OpenBao', ADDRESS_HINT);
  return body;
}

async function readBounded({ body }: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MOST_ANSWER_BYTES) throw new RemoteError('an answer of Vault is too large', ADDRESS_HINT);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** WHY not what the answer says: it is somebody else's text, and the status says it all. */
function refusal(status: number): RemoteError {
  if (status >= 300 && status < 400) {
    return new RemoteError(
      `Vault answered with a redirect (${status}), which is not followed`,
      'A standby does so: give the address of the active node.',
    );
  }
  if (status === 400) return new RemoteError('Vault refused the request (400)', MOUNT_HINT);
  if (status === 503) {
    return new RemoteError(
      'Vault is sealed, or under maintenance (503)',
      'vault status tells which; run the same again then.',
    );
  }
  return new RemoteError(`Vault answered with status ${status}`, 'Its log tells more; run the same again then.');
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return cause instanceof Error ? cause.name : 'unknown reason';
}
