/** A bar of filters whose state is in the URL, so that a link reproduces the rows. */
import { useId, useState } from 'react';
import { useSearchParams } from 'wouter';
import { usePreferences } from '../shell/preferences.ts';
import { formatTime, type Zone } from './words.ts';

export interface FilterField {
  /** The name of the parameter in the URL. */
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
  /** A closed set of values becomes a select; other values are suggestions. */
  readonly options?: readonly string[];
  readonly suggestions?: readonly string[];
  /** A time in ISO 8601. */
  readonly isTime?: boolean;
}

/** The values of the fields that are set. */
export function useFilters(fields: readonly FilterField[]): Readonly<Record<string, string>> {
  const [parameters] = useSearchParams();
  return Object.fromEntries(
    fields.flatMap(({ name }) => {
      const value = parameters.get(name);
      return value === null || value === '' ? [] : [[name, value]];
    }),
  );
}

interface SetOptions {
  /** Whether the value was typed. Back then leads to the previous page, and not through each text. */
  readonly isTyped?: boolean;
}

/** Sets or removes parameters of the URL. Back returns to the previous view. */
export function useSetParameters() {
  const [, setParameters] = useSearchParams();
  return (changes: Readonly<Record<string, string | null>>, { isTyped = false }: SetOptions = {}): void => {
    const options = { replace: isTyped };
    setParameters((before) => {
      const next = new URLSearchParams(before);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === '') next.delete(name);
        else next.set(name, value);
      }
      // With an equal URL, Back would seem to do nothing.
      options.replace ||= next.toString() === before.toString();
      return next;
    }, options);
  };
}

/**
 * An input that is being edited. A value that was set elsewhere replaces it. WHY not a new element: the field would lose
 * the focus.
 */
export function useDraft<T>(value: T): readonly [T, (draft: T) => void] {
  const [draft, setDraft] = useState(value);
  const [base, setBase] = useState(value);
  if (JSON.stringify(base) !== JSON.stringify(value)) {
    setBase(value);
    setDraft(value);
  }
  return [draft, setDraft];
}

export function FilterBar({ fields, label }: { readonly fields: readonly FilterField[]; readonly label: string }) {
  const values = useFilters(fields);
  const setParameters = useSetParameters();
  const clear = (): void => setParameters(Object.fromEntries(fields.map(({ name }) => [name, null])));
  return (
    <search className="filters" aria-label={label}>
      {fields.map((field) => (
        <Filter
          key={field.name}
          field={field}
          value={values[field.name] ?? ''}
          onChange={(value) => setParameters({ [field.name]: value }, { isTyped: field.options === undefined })}
        />
      ))}
      {Object.keys(values).length > 0 && (
        <button type="button" onClick={clear}>
          Clear filters
        </button>
      )}
    </search>
  );
}

interface FilterProps {
  readonly field: FilterField;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Filter({ field: { label, placeholder, options, suggestions, isTime }, value, onChange }: FilterProps) {
  const [text, setText] = useDraft(value);
  const listId = useId();
  if (isTime === true) return <TimeFilter label={label} value={value} onChange={onChange} />;
  if (options !== undefined) {
    return (
      <label className="field">
        <span>{label}</span>
        <select value={value} onChange={({ target }) => onChange(target.value)}>
          <option value="">Any</option>
          {options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      </label>
    );
  }
  return (
    <label className="field">
      <span>{label}</span>
      <input
        value={text}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        list={suggestions === undefined ? undefined : listId}
        onChange={({ target }) => setText(target.value)}
        onBlur={() => text !== value && onChange(text)}
        onKeyDown={({ key }) => key === 'Enter' && onChange(text)}
      />
      {suggestions !== undefined && (
        <datalist id={listId}>
          {suggestions.map((suggestion) => (
            <option key={suggestion} value={suggestion} />
          ))}
        </datalist>
      )}
    </label>
  );
}

interface Props {
  readonly label: string;
  /** A time in ISO 8601; empty if it is not set. */
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The text of the field, such as `2026-01-31T14:05:09`; empty if the value is not a time. */
function toField(value: string, zone: Zone): string {
  // The server also reads a time without an offset as UTC.
  const date = new Date(/T(?!.*(?:Z|[+-]\d{2}:?\d{2})$)/i.test(value) ? `${value}Z` : value);
  return Number.isNaN(date.getTime()) ? '' : formatTime(date, zone, date.getMilliseconds() !== 0).replace(' ', 'T');
}

function toIso(text: string, zone: Zone): string {
  const date = new Date(zone === 'UTC' ? `${text}Z` : text);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().replace('.000Z', 'Z');
}

function TimeFilter({ label, value, onChange }: Props) {
  const { zone } = usePreferences();
  const field = toField(value, zone);
  const [text, setText] = useDraft(field);
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
