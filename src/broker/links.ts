/** Rewrites links of a response that point to the target's own origin, so that the caller's next request comes here. */
import { removeParameter } from './injection.ts';
import type { HeaderPairs, Order } from './protocol.ts';

const LINKS = new Set(['link', 'location', 'content-location']);
const isLink = (name: string): boolean => LINKS.has(name.toLowerCase());

/**
 * The limit is for all headers of a response. WHY: a prefix is longer than `<>`, and there could be tens of thousands.
 */
const MAX_LINKS = 64;
const MAX_LINK_BYTES = 16 * 1024;

/**
 * Redirects to other origins stay as they are: the caller may follow them, without the credential. Headers with too
 * many or too long links are removed. Returns the given headers if none of them has links.
 */
export function rewriteLinks(headers: HeaderPairs, order: Order): HeaderPairs {
  const { linkPrefix } = order;
  if (linkPrefix === null || !headers.some(([name]) => isLink(name))) return headers;
  let [links, bytes] = [0, 0];
  const rewrite = (link: string): string => {
    links++;
    bytes += link.length;
    return links > MAX_LINKS || bytes > MAX_LINK_BYTES ? '' : rewriteLink(link, order, linkPrefix);
  };
  return headers.flatMap(([name, value]) => {
    if (!isLink(name)) return [[name, value] as const];
    const rewritten =
      name.toLowerCase() === 'link'
        ? value.replaceAll(/<([^<>]*)>/g, (_, link: string) => `<${rewrite(link)}>`)
        : rewrite(value);
    bytes += rewritten.length;
    return links > MAX_LINKS || bytes > MAX_LINK_BYTES ? [] : [[name, rewritten] as const];
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
