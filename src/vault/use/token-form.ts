/**
 * The form of the vault's own tokens, and the search for them in a request that would be forwarded. A text of the form
 * is not yet a token that was issued. Pure. SOURCE: docs/formats.md, "Tokens".
 */
import { TOKEN_PREFIXES } from '../catalogue/sdk-environment.ts';

export type TokenPlace = 'path' | 'query' | 'header';

export interface FoundToken {
  readonly token: string;
  readonly place: TokenPlace;
}

export interface ForwardedParts {
  readonly path: string;
  readonly query: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

const RANDOM_PART = '[A-Za-z0-9_-]{43}';
const PREFIXES = TOKEN_PREFIXES.map((prefix) => RegExp.escape(prefix)).join('|');
/** The prefixes of SDKs' keys. */
const SDK_PREFIX = `(?:${PREFIXES})?`;
const WHOLE_TOKENS = new RegExp(`${SDK_PREFIX}lh[us]_${RANDOM_PART}(?![A-Za-z0-9_-])`, 'g');
const USE_TOKEN = new RegExp(`^${SDK_PREFIX}lhu_${RANDOM_PART}$`);
const ADMIN_TOKEN = new RegExp(`^lha_${RANDOM_PART}$`);
/** WHY a lookahead: a token may begin within another match, such as after the prefix of an SDK's keys. */
const ANY_TOKEN = new RegExp(`(?=(${SDK_PREFIX}lh[aus]_${RANDOM_PART}))`, 'g');
const MAY_HAVE_TOKEN = /lh[aus]_|%/;

/** The tokens of sessions and use leases in a text, each of which a caller may have sent as its own. */
export function wholeTokens(text: string): string[] {
  return text.match(WHOLE_TOKENS) ?? [];
}

export function isAdminToken(token: string): boolean {
  return ADMIN_TOKEN.test(token);
}

export function isUseToken(token: string): boolean {
  return USE_TOKEN.test(token);
}

/** Every text that has the form of a token, including inside a longer one and percent-encoded. */
export function findTokens({ path, query, headers }: ForwardedParts): FoundToken[] {
  return [
    ...tokensIn(path, 'path'),
    ...tokensIn(query, 'query'),
    ...headers.flatMap(([name, value]) => [...tokensIn(name, 'header'), ...tokensIn(value, 'header')]),
  ];
}

export function hasToken(text: string): boolean {
  return tokensIn(text, 'path').length > 0;
}

function tokensIn(text: string, place: TokenPlace): FoundToken[] {
  if (!MAY_HAVE_TOKEN.test(text)) return [];
  const decoded = text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  const found = new Set(
    [text, decoded].flatMap((each) => [...each.matchAll(ANY_TOKEN)].map(([, token = '']) => token)),
  );
  return [...found].map((token) => ({ token, place }));
}
