/**
 * Keeps the session while its operator is active: renews it when less than ten minutes are left and a key or the
 * pointer was used since the last check. An idle session ends by itself, after a notice. The administrator's token does
 * not end, so the page signs it out after the same time.
 */
import { useEffect, useRef, useState } from 'react';
import { noticeError, renewWhileActive, signOut } from './console-client.ts';
import { serverNow } from './server-clock.ts';
import type { SessionIdentity } from './session-store.ts';

const CHECK_INTERVAL_MS = 20_000;
const RENEWAL_THRESHOLD_MS = 10 * 60_000;
const NOTICE_THRESHOLD_MS = 2 * 60_000;
const ACTIVE_FOR_MS = 60_000;
const IDLE_MS = 30 * 60_000;
const WAS_IDLE = 'The page was not used for 30 minutes. Sign in again to continue where you were.';
const EVENTS = ['keydown', 'pointerdown', 'wheel', 'touchstart'] as const;

export interface NearEnd {
  readonly leftMs: number;
  /** Whether the session ends because it is idle, which a renewal postpones. */
  readonly isExtensible: boolean;
}

/** WHY two clocks: the monotonic one may stop while the computer sleeps, and the server's may be set. */
function readClocks() {
  return { monotonicMs: performance.now(), serverMs: serverNow() };
}

function millisecondsSince({ monotonicMs, serverMs }: ReturnType<typeof readClocks>): number {
  const now = readClocks();
  return Math.max(now.monotonicMs - monotonicMs, now.serverMs - serverMs);
}

/** Returns the end of the session once it is near; null otherwise. */
export function useActivity({ expiresAt, endsAt, expiryMs }: SessionIdentity): NearEnd | null {
  const [nearEnd, setNearEnd] = useState<NearEnd | null>(null);
  // WHY not inside the effect: a new end of the session would count as activity, and would renew an idle session.
  const activeAt = useRef(readClocks());
  useEffect(() => {
    const note = (): void => {
      activeAt.current = readClocks();
    };
    const check = (): void => {
      const idleMs = millisecondsSince(activeAt.current);
      if (expiresAt === null || expiryMs === null) {
        setNearEnd(null);
        if (idleMs >= IDLE_MS) signOut(WAS_IDLE).catch(noticeError);
        return;
      }
      const left = expiryMs - performance.now();
      const isExtensible = endsAt === null || Date.parse(endsAt) > Date.parse(expiresAt);
      setNearEnd(left < NOTICE_THRESHOLD_MS ? { leftMs: Math.max(0, left), isExtensible } : null);
      if (left < RENEWAL_THRESHOLD_MS && idleMs < ACTIVE_FOR_MS && isExtensible) {
        renewWhileActive().catch(noticeError);
      }
    };
    check();
    for (const name of EVENTS) addEventListener(name, note, { passive: true, capture: true });
    const timer = setInterval(check, CHECK_INTERVAL_MS);
    return () => {
      clearInterval(timer);
      for (const name of EVENTS) removeEventListener(name, note, { capture: true });
    };
  }, [expiresAt, endsAt, expiryMs]);
  return nearEnd;
}
