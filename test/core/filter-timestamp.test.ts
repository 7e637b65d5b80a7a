// ISO 8601 timestamps of filters. SOURCE: docs/decisions.md, "The audit log".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseTimestamp } from '../../src/core/filter-timestamp.ts';
import { runs } from '../kit/property.ts';
import { refusal } from './refusals.ts';

const ACCEPTED: readonly [text: string, instant: string][] = [
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2026-01-31T09:30', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31T09:30:05', '2026-01-31T09:30:05.000Z'],
  ['2026-01-31T09:30:05Z', '2026-01-31T09:30:05.000Z'],
  ['2026-01-31T09:30Z', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31T09:30:05.250Z', '2026-01-31T09:30:05.250Z'],
  ['2026-01-31T09:30:05.2Z', '2026-01-31T09:30:05.200Z'],
  ['2026-01-31T09:30:05,25Z', '2026-01-31T09:30:05.250Z'],
  ['2026-01-31T09:30:05.250000000Z', '2026-01-31T09:30:05.250Z'],
  ['2026-01-31T09:30:00+02:00', '2026-01-31T07:30:00.000Z'],
  ['2026-01-31T09:30:00-02:00', '2026-01-31T11:30:00.000Z'],
  ['2026-01-31T09:30:00+0530', '2026-01-31T04:00:00.000Z'],
  ['2026-01-01T00:30:00+01:00', '2025-12-31T23:30:00.000Z'],
  ['2026-12-31T23:30:00-01:00', '2027-01-01T00:30:00.000Z'],
  ['2026-01-31T00:00:00+00:00', '2026-01-31T00:00:00.000Z'],
  ['2026-01-31T00:00:00-00:00', '2026-01-31T00:00:00.000Z'],
  ['2026-01-31T00:00:00+23:59', '2026-01-30T00:01:00.000Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ['2000-02-29', '2000-02-29T00:00:00.000Z'],
  ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
  ['0100-01-01', '0100-01-01T00:00:00.000Z'],
  // What Go and .NET send for a time that was never set.
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ['0099-12-31T23:59:59Z', '0099-12-31T23:59:59.000Z'],
  ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
];

test('timestamps are read at the beginning and the end of a range', () => {
  for (const [text, instant] of ACCEPTED) {
    assert.equal(new Date(parseTimestamp(text, 'since', 'up')).toISOString(), instant, text);
    assert.equal(new Date(parseTimestamp(text, 'until', 'down')).toISOString(), instant, text);
  }
});

const REFUSED = [
  '',
  'now',
  '2026',
  '2026-01',
  '2026-1-31',
  '20260131',
  '2026-W05-6',
  '2026-031',
  '2026-00-01',
  '2026-13-01',
  '2026-01-00',
  '2026-01-32',
  '2026-02-29',
  '1900-02-29',
  '2026-04-31',
  '2026-01-31Z',
  '2026-01-31+02:00',
  '2026-01-31T',
  '2026-01-31T09',
  '2026-01-31T24:00:00Z',
  '2026-01-31T09:60:00Z',
  '2026-01-31T09:30:60Z',
  '2026-01-31T09:30:05.Z',
  '2026-01-31T09:30.5Z',
  '2026-01-31T09:30:05.1234567890Z',
  '2026-01-31T09:30:05+24:00',
  '2026-01-31T09:30:05+02:60',
  '2026-01-31T09:30:05+2',
  '2026-01-31T09:30:05ZZ',
  '2026-01-31T09:30:05Z\n',
  ' 2026-01-31',
  '2026-01-31 09:30:05',
  '+002026-01-31',
  '-2026-01-31',
  '12026-01-31',
  '9999-12-31T23:59:59-01:00',
  '0000-01-01T00:00:00+01:00',
  '1769851805000',
  '\u0662\u0660\u0662\u0666-01-31',
];

test('anything else is rejected, with an error that does not depend on it', () => {
  const errors = REFUSED.map((text) => refusal('since', () => parseTimestamp(text, 'since', 'up'), text));
  assert.equal(new Set(errors).size, 1);
});

const ROUNDED: readonly [fraction: string, up: number, down: number][] = [
  ['.0000001', 1, 0],
  ['.0009', 1, 0],
  ['.2500001', 251, 250],
  ['.250999999', 251, 250],
  ['.999', 999, 999],
  ['.999000001', 1000, 999],
  ['.000000000', 0, 0],
  // Fractions that a binary number does not hold exactly must not be rounded for that.
  ['.001', 1, 1],
  ['.057', 57, 57],
  ['.580', 580, 580],
  ['.001001', 2, 1],
];

test('a fraction is rounded into the range', () => {
  const second = Date.UTC(2026, 0, 31, 9, 30, 5);
  for (const [fraction, up, down] of ROUNDED) {
    assert.equal(parseTimestamp(`2026-01-31T09:30:05${fraction}Z`, 'since', 'up') - second, up, fraction);
    assert.equal(parseTimestamp(`2026-01-31T09:30:05${fraction}Z`, 'until', 'down') - second, down, fraction);
  }
  assert.equal(parseTimestamp('1969-12-31T23:59:59Z', 'since', 'up'), -1000);
});

const instants = fc.integer({ min: Date.UTC(1000, 0, 1), max: Date.UTC(9998, 11, 31) });
const offsets = fc.integer({ min: -(23 * 60 + 59), max: 23 * 60 + 59 });

function offsetText(minutes: number): string {
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `${minutes < 0 ? '-' : '+'}${String(hours).padStart(2, '0')}:${String(rest).padStart(2, '0')}`;
}

test('every timestamp that the service writes is parsed to the same time, with every offset', () => {
  fc.assert(
    fc.property(instants, offsets, (instant, offset) => {
      const text = new Date(instant).toISOString();
      assert.equal(parseTimestamp(text, 'since', 'up'), instant);
      const wall = new Date(instant + offset * 60_000).toISOString().replace('Z', offsetText(offset));
      assert.equal(parseTimestamp(wall, 'until', 'down'), instant);
    }),
    runs(100, 1000),
  );
});
