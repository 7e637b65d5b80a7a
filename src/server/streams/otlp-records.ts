/**
 * Entries as log records of OpenTelemetry, in OTLP's JSON encoding: 64-bit numbers are decimal strings, and
 * enumerations are numbers. SOURCE: OTLP 1.5, "JSON Protobuf Encoding"; opentelemetry/proto/logs/v1/logs.proto.
 */
import type { AuditEntry } from '../../core/audit.ts';

/** SOURCE: the logs data model, "Field: SeverityNumber". */
const SEVERITIES: Readonly<Record<string, readonly [number: number, text: string]>> = {
  error: [17, 'ERROR'],
  denied: [13, 'WARN'],
  not_found: [13, 'WARN'],
};
const INFO = [9, 'INFO'] as const;
const NANOSECONDS_PER_MS = '000000';

type AnyValue = { readonly stringValue: string } | { readonly intValue: string };
interface KeyValue {
  readonly key: string;
  readonly value: AnyValue;
}

const text = (key: string, value: string): KeyValue => ({ key, value: { stringValue: value } });

/** The body is the entry as in the export, so that a receiver can verify the chain; its fields are attributes too. */
function toRecord(entry: AuditEntry, observedAt: number): object {
  const [severityNumber, severityText] = SEVERITIES[entry.result] ?? INFO;
  const attributes = Object.entries(entry).flatMap(([field, value]: [string, unknown]): KeyValue[] => {
    const key = `leasehold.${field}`;
    if (typeof value === 'number') return [{ key, value: { intValue: String(value) } }];
    return typeof value === 'string' ? [text(key, value)] : [];
  });
  return {
    timeUnixNano: Date.parse(entry.timestamp) + NANOSECONDS_PER_MS,
    observedTimeUnixNano: observedAt + NANOSECONDS_PER_MS,
    severityNumber,
    severityText,
    eventName: entry.event_type,
    body: { stringValue: JSON.stringify(entry) },
    attributes,
  };
}

/** The body of an export request. `instance` tells nodes apart. */
export function otlpRequest(
  entries: readonly AuditEntry[],
  { version, instance }: { readonly version: string; readonly instance: string },
  observedAt: number,
): string {
  const resource = {
    attributes: [
      text('service.name', 'leasehold'),
      text('service.version', version),
      text('service.instance.id', instance),
    ],
  };
  const scopeLogs = [
    { scope: { name: 'leasehold.audit', version }, logRecords: entries.map((entry) => toRecord(entry, observedAt)) },
  ];
  return JSON.stringify({ resourceLogs: [{ resource, scopeLogs }] });
}

/** How many records the receiver rejected. SOURCE: OTLP, "Partial Success". */
export function rejectedRecords(response: string): number {
  try {
    const parsed: { partialSuccess?: { rejectedLogRecords?: unknown } } = JSON.parse(response);
    return Number(parsed.partialSuccess?.rejectedLogRecords ?? 0) || 0;
  } catch {
    return 0;
  }
}
