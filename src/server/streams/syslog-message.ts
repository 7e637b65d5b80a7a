/** An entry as a syslog message. SOURCE: RFC 5424, sections 6 and 6.2.1; RFC 6587, section 3.4.1 (octet counting). */
import { hostname } from 'node:os';
import type { AuditEntry } from '../../core/audit.ts';

/** Facility 13 is `log audit`. */
const FACILITY = 13;
const SEVERITIES: Readonly<Record<string, number>> = { error: 3, denied: 4, not_found: 5, allowed: 6 };
const INFORMATIONAL = 6;
const MAX_HOST_LENGTH = 255;

/** Host and process of the header; a name may have printable ASCII only. */
export const localOrigin = (): string => {
  const host = hostname()
    .replaceAll(/[^!-~]/g, '')
    .slice(0, MAX_HOST_LENGTH);
  return `${host === '' ? '-' : host} leasehold ${process.pid}`;
};

/**
 * The message with its length in front. Its text is the entry as JSON in ASCII: other characters are escaped, so that
 * the length in bytes is the length of the text, and no byte order mark is needed.
 */
export function syslogFrame(entry: AuditEntry, origin: string): string {
  const priority = FACILITY * 8 + (SEVERITIES[entry.result] ?? INFORMATIONAL);
  const json = JSON.stringify(entry).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const message = `<${priority}>1 ${entry.timestamp} ${origin} ${messageId(entry.event_type)} - ${json}`;
  return `${message.length} ${message}`;
}

/** At most 32 printable characters. */
const messageId = (eventType: string): string => eventType.replaceAll(/[^!-~]/g, '_').slice(0, 32) || '-';
