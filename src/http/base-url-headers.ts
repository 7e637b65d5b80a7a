/**
 * The headers of responses at base URLs. Headers that speak for the upstream's origin would now speak for this server's
 * origin, which the console shares: to browsers, and to proxies in front of the server. Such headers are dropped.
 * Others are kept, including unknown ones, because SDKs read headers of their service. SOURCE: docs/use.md, "Not for
 * browsers".
 */
import type { HeaderPairs } from '../broker/protocol.ts';

/** No document at the server's origin but the console may run scripts, load anything, or share its origin. */
export const SANDBOX_POLICY = "sandbox; default-src 'none'";

/** Sent with every response at a base URL, including errors of the server. */
export const BASE_URL_HEADERS = {
  'content-security-policy': SANDBOX_POLICY,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
  // A base URL may contain a token.
  'referrer-policy': 'no-referrer',
} as const;

const DROPPED: ReadonlySet<string> = new Set([
  // The server sets its own.
  ...Object.keys(BASE_URL_HEADERS),
  ...['pragma', 'expires', 'cdn-cache-control', 'surrogate-control', 'surrogate-key'],
  // The state of the origin in the browser: cookies, storage, sign-in, service workers.
  ...['set-cookie', 'set-cookie2', 'clear-site-data', 'service-worker-allowed', 'set-login', 'origin-agent-cluster'],
  ...['activate-storage-access', 'sec-session-registration', 'sec-session-challenge', 'use-as-dictionary'],
  ...['secure-session-registration', 'secure-session-challenge'],
  // How clients reach the origin.
  ...['alt-svc', 'strict-transport-security', 'public-key-pins', 'public-key-pins-report-only', 'expect-ct'],
  ...['accept-ch', 'accept-ch-lifetime', 'critical-ch', 'accept-signature', 'x-dns-prefetch-control'],
  // These set the abilities of a document.
  ...['content-security-policy-report-only', 'x-content-security-policy', 'x-webkit-csp', 'x-xss-protection'],
  ...['permissions-policy', 'permissions-policy-report-only', 'feature-policy', 'document-policy'],
  ...['document-policy-report-only', 'require-document-policy', 'integrity-policy', 'integrity-policy-report-only'],
  ...['cross-origin-opener-policy', 'cross-origin-opener-policy-report-only', 'cross-origin-embedder-policy'],
  ...['cross-origin-embedder-policy-report-only', 'document-isolation-policy', 'document-isolation-policy-report-only'],
  ...['refresh', 'default-style', 'sourcemap', 'x-sourcemap', 'speculation-rules', 'supports-loading-mode'],
  ...['no-vary-search', 'x-ua-compatible', 'x-permitted-cross-domain-policies', 'x-download-options'],
  // These let other origins read the response.
  'timing-allow-origin',
  // Reports and measurements.
  ...['nel', 'report-to', 'reporting-endpoints', 'observe-browsing-topics'],
  // Files and addresses that a proxy in front of the server would send in place of the response.
  ...['x-sendfile', 'x-lighttpd-send-file', 'x-litespeed-location', 'x-reproxy-url', 'x-accel-redirect'],
  ...['x-accel-expires', 'x-accel-limit-rate', 'x-accel-charset'],
]);
const DROPPED_PREFIXES = ['access-control-', 'attribution-reporting-', 'ad-auction-', 'shared-storage-'];

/** The headers or trailers without the dropped ones. WHY trailers too: proxies may merge them. */
export function withoutAddressHeaders(headers: HeaderPairs): HeaderPairs {
  return headers.filter(([name]) => {
    const plain = name.toLowerCase();
    return !DROPPED.has(plain) && !DROPPED_PREFIXES.some((prefix) => plain.startsWith(prefix));
  });
}
