/**
 * The server's time, from the header Leasehold-Time of its responses and the time elapsed since. INVARIANT: a time of
 * the server is compared with this clock and never with `Date.now()`, because the browser's clock may be wrong.
 */

/** Smaller differences are caused by the network. */
const MAX_DIFFERENCE_MS = 2000;

/** The server's time when `performance.now()` is 0; null before the first response. */
let originMs: number | null = null;

export function serverNow(): number {
  return originMs === null ? Date.now() : originMs + performance.now();
}

/** WHY not from a slow response: its time may be the time of the request. */
function noteTime({ headers }: Response, sentAt: number): void {
  const at = Date.parse(headers.get('leasehold-time') ?? '');
  const receivedAt = performance.now();
  if (Number.isNaN(at) || (originMs !== null && receivedAt - sentAt > MAX_DIFFERENCE_MS)) return;
  const noted = at - receivedAt;
  if (originMs === null || Math.abs(noted - originMs) > MAX_DIFFERENCE_MS) originMs = noted;
}

/** `fetch`, with responses that set the clock. */
export const timedFetch: typeof fetch = async (input, init) => {
  const sentAt = performance.now();
  const response = await fetch(input, init);
  noteTime(response, sentAt);
  return response;
};
