// Progress of long work: a bar on the terminal, removed at the end, and never on standard output.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { standBetween } from '../client/fault-proxy.ts';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
/** Delays responses. */
const between = await standBetween({ after }, service);
const home = newHome({ after }, { LEASEHOLD_ADDR: between.address, LEASEHOLD_TOKEN: service.adminToken });
const { onTerminal } = home;

/** The bar is redrawn from the beginning of its line, which is empty at the end. */
const CLEARED = '\r\u001b[K';

test('an import shows how many credentials it has stored', async () => {
  writeFileSync(join(home.path, '.env'), Array.from({ length: 24 }, (_, at) => `NAME_${at}=value-${at}\n`).join(''));
  const { promise: isShown, resolve: goOn } = Promise.withResolvers<void>();
  // The bar is drawn after a while; then the rest waits until it is seen.
  for (let at = 0; at < 8; at++) between.next({ after: () => sleep(300) }, ({ method }) => method === 'POST');
  for (let at = 8; at < 24; at++) between.next({ after: isShown }, ({ method }) => method === 'POST');
  const importing = onTerminal(['import', '.env', '--all', '--prefix', 'a', '--yes', '--field', 'result']);
  await importing.shows(/Storing {2}█+░+ {2}\d+ of 24/);
  goOn();
  assert.equal((await importing.ended).exitCode, 0);
  assert.ok(importing.screen().includes(CLEARED));
});

test('a verification shows how many entries the service has checked', async () => {
  const body = { running: true, entries_checked: 500, entries_total: 2000, started_at: '2026-01-01T00:00:00.000Z' };
  const isProgress = ({ path }: { path: string }) => path.endsWith('/progress');
  const { promise: isShown, resolve: endCheck } = Promise.withResolvers<void>();
  between.next({ after: isShown }, ({ path }) => path.endsWith('/verify'));
  for (let at = 0; at < 9; at++) between.next({ status: 200, body: JSON.stringify({ data: body }) }, isProgress);
  const verifying = onTerminal(['audit', 'verify', '--field', 'valid']);
  await verifying.shows(/Verifying {2}█{8}░{22} {2}500 of 2,000/);
  endCheck();
  assert.equal((await verifying.ended).exitCode, 0);
  assert.ok(verifying.screen().endsWith(`${CLEARED}true\n`), verifying.screen());
});

test('an export shows how many entries it has written', async () => {
  await home.leasehold(['put', 'a', '-'], { input: 'x' });
  const { promise: isShown, resolve: goOn } = Promise.withResolvers<void>();
  between.next({ slowlyUntil: isShown }, ({ path }) => path.endsWith('/export'));
  const exporting = onTerminal(['audit', 'export', '--out', 'log']);
  await exporting.shows(/Exporting {2}█+░* {2}\d+ of \d+/);
  goOn();
  assert.equal((await exporting.ended).exitCode, 0);
  assert.match(exporting.screen(), /Wrote \d+ entries/);
});
