/** Rewrites links of a response that point to the target's own origin, so that the caller's next request comes here. */
import { removeParameter } from './injection.ts';
import type { HeaderPairs, Order } from './protocol.ts';

const LINKS = new Set(['location', 'content-location']);

/**
 * WHY a limit: two characters, `<>`, mean the address of the request, of up to 8,192. A header of such links would
 * become larger than every message between the two processes. As many as any page of a list has fit.
 */
const MAX_LINK_CHARACTERS = 64 * 1024;

/**
 * Redirects to other origins stay as they are: the caller may follow them, without the credential. So do the links
 * after the limit.
 */
export function rewriteLinks(headers: HeaderPairs, order: Order): HeaderPairs {
  const { linkPrefix } = order;
  if (linkPrefix === null) return headers;
  let left = MAX_LINK_CHARACTERS;
  const rewrite = (link: string): string => {
    const text = left > 0 ? rewriteLink(link, order, linkPrefix) : link;
    left -= text.length;
    return text;
  };
  return headers.map(([name, value]) => {
    const plain = name.toLowerCase();
    if (LINKS.has(plain)) return [name, rewrite(value)];
    if (plain !== 'link') return [name, value];
    return [name, value.replaceAll(/<([^<>]*)>/g, (_, link: string) => `<${rewrite(link)}>`)];
  });
}

function rewriteLink(link: string, order: Order, prefix: string): string {
  const base = `${order.scheme}://${order.host}:${order.port}`;
  const url = URL.parse(link, `${base}${order.path}`);
  if (url === null || url.origin !== new URL(base).origin) return link;
  const query = url.search.slice(1);
  // Our own parameter would come back as `[secret]`; it is set again anyway.
  const kept = order.placement.kind === 'query' ? removeParameter(query, order.placement.name) : query;
  return `${prefix}${url.pathname}${kept === '' ? '' : `?${kept}`}${url.hash}`;
}
