/** The addresses of receivers, as a flag names them. Messages never echo an address. */
import { isLoopback } from '../client/address.ts';
import { UsageError } from '../platform/errors.ts';

/** A flag whose value is an address, or a list of them. */
export interface AddressFlag {
  /** Such as `--approval-webhook`. */
  readonly name: string;
  /** Of the token's file, by default as in `--log-stream-token-file`; null for a receiver that takes no token. */
  readonly tokenFlag?: string | null;
  /** The forms of an address, for messages. */
  readonly forms: string;
}

/** The scheme of `file:/PATH` or `webhook+https://…`, and what follows the colon. */
export function splitScheme(text: string): readonly [scheme: string, rest: string] {
  const [, scheme = '', rest = ''] = /^([a-z+]+):(.*)$/.exec(text) ?? [];
  return [scheme, rest];
}

/** `rest` follows `file:`. @throws UsageError */
export function parseFilePath({ name }: AddressFlag, rest: string): string {
  if (!rest.startsWith('/')) throw new UsageError(`${name}: file: needs an absolute path.`);
  return rest.replace(/^\/\/(?=\/)/, '');
}

/** @throws UsageError */
function parseUrl({ name, forms }: AddressFlag, text: string): URL {
  const url = URL.parse(text);
  if (url === null) throw new UsageError(`${name} must be ${forms}.`);
  return url;
}

/** An address of HTTP, with TLS unless it is on this machine. @throws UsageError */
export function parseHttpUrl(flag: AddressFlag, text: string): URL {
  const url = parseUrl(flag, text);
  if (url.username !== '' || url.password !== '') {
    const where = flag.tokenFlag === null ? '' : ` in ${flag.tokenFlag ?? `${flag.name}-token-file`},`;
    throw new UsageError(`${flag.name}: give credentials${where} not in the address.`);
  }
  if (url.protocol !== 'https:' && !isLoopback(url.hostname))
    throw new UsageError(`${flag.name}: use https; http is for receivers on this machine only.`);
  return url;
}
