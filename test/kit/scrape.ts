/** Scrapes the metrics of a service over its socket. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Family, parseMetrics } from './prometheus-text.ts';

/** Longer than the time for which a page is shared. */
const SHARED_MS = 250;

export async function scrape(address: string, headers: Record<string, string> = {}): Promise<Map<string, Family>> {
  await sleep(SHARED_MS);
  const response = await fetch(`${address}/metrics`, { headers });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  return parseMetrics(text);
}
