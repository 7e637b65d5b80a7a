/**
 * The server's time, by the Date header of its responses and the time that passed since. INVARIANT: a time of the
 * server is compared with this clock and never with `Date.now()`, because the browser's clock may be wrong.
 */

/** The Date header has whole seconds, so that the time is half a second later on average. */
const HALF_SECOND_MS = 500;
/** Smaller differences are those of seconds and of the network. */
const MAX_DIFFERENCE_MS = 2000;

/** What the server's time is when `performance.now()` is 0; null before the first response. */
let originMs: number | null = null;

export function serverNow(): number {
  return originMs === null ? Date.now() : originMs + performance.now();
}

/** Takes the time from a response. WHY not from a slow one: its header may be as old as the request. */
function noteTime({ headers }: Response, sentAt: number): void {
  const at = Date.parse(headers.get('date') ?? '');
  const receivedAt = performance.now();
  if (Number.isNaN(at) || (originMs !== null && receivedAt - sentAt > MAX_DIFFERENCE_MS)) return;
  const noted = at + HALF_SECOND_MS - receivedAt;
  if (originMs === null || Math.abs(noted - originMs) > MAX_DIFFERENCE_MS) originMs = noted;
}

/** As `fetch`; each response sets the clock. */
export const timedFetch: typeof fetch = async (input, init) => {
  const sentAt = performance.now();
  const response = await fetch(input, init);
  noteTime(response, sentAt);
  return response;
};
