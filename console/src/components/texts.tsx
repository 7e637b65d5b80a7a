/** Short texts in rows and facts: states, times, links, and texts that can be copied. */
import { useState } from 'react';
import { Link } from 'wouter';
import { usePreferences } from '../shell/preferences.ts';
import { announce } from './live-region.tsx';
import { formatTime } from './words.ts';

export type Tone = 'neutral' | 'good' | 'warning' | 'danger';

/** A short state, such as the result of an entry. The text is complete without the colour. */
export function Badge({ text, tone = 'neutral' }: { readonly text: string; readonly tone?: Tone }) {
  return <span className={`badge ${tone}`}>{text}</span>;
}

export const credentialHref = (path: string): string => `/credentials?path=${encodeURIComponent(path)}`;

export function CredentialLink({ path }: { readonly path: string }) {
  return <Link href={credentialHref(path)}>{path}</Link>;
}

export function AgentLink({ name }: { readonly name: string }) {
  return <Link href={`/agents?agent=${encodeURIComponent(name)}`}>{name}</Link>;
}

/** Links to the entries of an agent, or of an operator by `operator:NAME`. */
export function EntriesLink({ principal }: { readonly principal: string }) {
  return <Link href={`/log?agent=${encodeURIComponent(principal)}`}>Show its entries in the audit log</Link>;
}

interface CopyableProps {
  readonly text: string;
  /** The name of the copied text, such as `the request id`. */
  readonly what: string;
}

const SHOWN_MS = 2000;

/** A text such as an id, with a button that copies it. Never for credential values. */
export function Copyable({ text, what }: CopyableProps) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return announce('The browser does not allow copying. Select the text instead.');
    }
    announce(`Copied ${what}.`);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return (
    <span className="copyable">
      <code>{text}</code>
      <button type="button" className="small" aria-label={`Copy ${what}`} onClick={() => void copy()}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </span>
  );
}

interface TimeProps {
  /** A time in ISO 8601. */
  readonly at: string;
  /** Whether milliseconds are shown. */
  readonly isPrecise?: boolean;
}

/** A time in the chosen zone; the other zone is in its title. */
export function Time({ at, isPrecise = false }: TimeProps) {
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
