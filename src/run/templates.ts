/**
 * Values with references inside: `postgres://app:{{leasehold://prod/db/password | url}}@db/app`. The braces are needed
 * because a path may contain `@`, `:` and `/`, so its end in a URL would be ambiguous.
 */

import { UsageError } from '../platform/errors.ts';
import { Secret } from '../vault/credentials/credential.ts';
import type { EnvBinding } from './leases.ts';
import { parseReference } from './references.ts';

/** Bounded, so that the cost of a long text is linear in its length. */
const BRACES = /\{\{\s{0,16}(leasehold:[^{}|\s]{0,1024})\s{0,16}(?:\|\s{0,16}([^{}\s]{0,32})\s{0,16})?\}\}/gi;
const SCHEME = 'leasehold://';

type Part = string | { readonly of: string; readonly isUrlEncoded: boolean };

export interface Template {
  readonly name: string;
  readonly parts: readonly Part[];
}

export interface ParsedTemplate {
  readonly template: Template;
  /** References named `NAME[1]` and so on, which are not valid names of variables. */
  readonly wanted: readonly EnvBinding[];
}

/** Returns null for a text without references in braces. @throws UsageError */
export function parseTemplate(name: string, text: string, where: string): ParsedTemplate | null {
  const parts: Part[] = [];
  const wanted: EnvBinding[] = [];
  let at = 0;
  for (const found of text.matchAll(BRACES)) {
    const [whole, reference = '', filter] = found;
    if (filter !== undefined && filter !== 'url') throw new UsageError(`${where}: after | only url may follow`);
    const of = `${name}[${wanted.length + 1}]`;
    parts.push(text.slice(at, found.index), { of, isUrlEncoded: filter === 'url' });
    wanted.push({ name: of, ...parseReference(reference, where) });
    at = found.index + whole.length;
  }
  if (wanted.length === 0) return null;
  parts.push(text.slice(at));
  for (const part of parts) if (typeof part === 'string') assertNoReference(part, where);
  return { template: { name, parts }, wanted };
}

/** Rejects a reference without braces, which the program would receive verbatim. @throws UsageError */
export function assertNoReference(text: string, where: string): void {
  if (!text.includes(SCHEME)) return;
  throw new UsageError(
    `${where}: a reference inside a value needs braces`,
    `Write {{${SCHEME}PATH}}, or {{${SCHEME}PATH | url}} where the value is part of a URL.`,
  );
}

export function fillTemplates(
  templates: readonly Template[],
  values: ReadonlyMap<string, Secret>,
): ReadonlyMap<string, Secret> {
  const filled = new Map(values);
  for (const { name, parts } of templates) {
    const texts = parts.map((part) => {
      if (typeof part === 'string') return part;
      filled.delete(part.of);
      const text = values.get(part.of)?.reveal() ?? '';
      return part.isUrlEncoded ? encodeForUrl(text) : text;
    });
    filled.set(name, new Secret(texts.join('')));
  }
  return filled;
}

/** Encodes for any part of a URL. SOURCE: RFC 3986, section 2.3: all except the unreserved characters */
function encodeForUrl(text: string): string {
  const toPercent = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, toPercent);
}
