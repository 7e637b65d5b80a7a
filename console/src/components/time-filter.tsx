/** A filter by a time, entered in the chosen zone as the tables show it. The URL has it in UTC, so that a link is exact. */
import { useState } from 'react';
import { usePreferences, type Zone } from '../shell/preferences.ts';
import { formatTime } from './time.tsx';

interface Props {
  readonly label: string;
  /** ISO 8601; empty if it is not set. */
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** As the field has it: `2026-01-31T14:05:09`. Empty for what is not a time. */
function toField(value: string, zone: Zone): string {
  // As the service reads it: without an offset it is UTC.
  const date = new Date(/T(?!.*(?:Z|[+-]\d{2}:?\d{2})$)/i.test(value) ? `${value}Z` : value);
  return Number.isNaN(date.getTime()) ? '' : formatTime(date, zone, date.getMilliseconds() !== 0).replace(' ', 'T');
}

function toIso(text: string, zone: Zone): string {
  const date = new Date(zone === 'UTC' ? `${text}Z` : text);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().replace('.000Z', 'Z');
}

export function TimeFilter({ label, value, onChange }: Props) {
  const { zone } = usePreferences();
  const field = toField(value, zone);
  const [text, setText] = useState(field);
  const [shownField, setShownField] = useState(field);
  // Another value, or the same in another zone.
  if (shownField !== field) {
    setShownField(field);
    setText(field);
  }
  const change = (isIncomplete: boolean): void => {
    if (!isIncomplete && text !== field) onChange(toIso(text, zone));
  };
  return (
    <label className="field time-field">
      <span>{`${label} (${zone === 'UTC' ? 'UTC' : 'local time'})`}</span>
      <input
        type="datetime-local"
        step={1}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onBlur={({ target }) => change(target.validity.badInput)}
        onKeyDown={({ key, currentTarget }) => key === 'Enter' && change(currentTarget.validity.badInput)}
      />
    </label>
  );
}
