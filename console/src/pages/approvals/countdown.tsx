/** The time that is left by the server's clock, counted down by the second. Screen readers get it when they read it, not each second. */
import { useEffect, useState } from 'react';
import { serverNow } from '../../session/server-clock.ts';

const TICK_MS = 1000;

function toWords(leftMs: number): string {
  const seconds = Math.max(0, Math.ceil(leftMs / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const padded = (number: number): string => String(number).padStart(2, '0');
  return `${hours > 0 ? `${hours}:${padded(minutes)}` : minutes}:${padded(seconds % 60)}`;
}

export function Countdown({ to }: { readonly to: string }) {
  const [leftMs, setLeftMs] = useState(() => Date.parse(to) - serverNow());
  useEffect(() => {
    const tick = (): void => setLeftMs(Date.parse(to) - serverNow());
    tick();
    const timer = setInterval(tick, TICK_MS);
    return () => clearInterval(timer);
  }, [to]);
  return (
    <span className="countdown" role="timer" aria-live="off">
      {leftMs > 0 ? `${toWords(leftMs)} left` : 'no time left'}
    </span>
  );
}
