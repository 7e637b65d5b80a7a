/** A time in the chosen zone; the other zone is in its title. */
import { usePreferences, type Zone } from '../shell/preferences.ts';

interface Props {
  /** A time in ISO 8601. */
  readonly at: string;
  /** Whether milliseconds are shown. */
  readonly isPrecise?: boolean;
}

const padded = (number: number, digits = 2): string => String(number).padStart(digits, '0');

/** A time such as `2026-01-31 14:05:09.123`. */
export function formatTime(date: Date, zone: Zone, isPrecise: boolean): string {
  if (zone === 'UTC') {
    return date
      .toISOString()
      .replace('T', ' ')
      .slice(0, isPrecise ? 23 : 19);
  }
  const day = `${date.getFullYear()}-${padded(date.getMonth() + 1)}-${padded(date.getDate())}`;
  const clock = `${padded(date.getHours())}:${padded(date.getMinutes())}:${padded(date.getSeconds())}`;
  return `${day} ${clock}${isPrecise ? `.${padded(date.getMilliseconds(), 3)}` : ''}`;
}

export function Time({ at, isPrecise = false }: Props) {
  const { zone } = usePreferences();
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  const title = `${formatTime(date, 'UTC', true)} UTC · ${formatTime(date, 'local', true)} local`;
  return (
    <time dateTime={at} title={title}>
      {formatTime(date, zone, isPrecise)}
    </time>
  );
}
