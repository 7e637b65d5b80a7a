// deploy/monitoring and docs/monitoring.md against a real page of metrics: names, labels, syntax and runbooks.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import { METRICS } from '../../src/server/metrics/declarations.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { problemsOf } from '../kit/promql.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8');
const page = read('docs/monitoring.md');

const service = await startTestService({ after }, ['--log-stream', `file:${temporaryDirectory({ after })}/log`]);
await service.admin.post('/api/v1/credentials', { path: 'a', value: 'a value' });
// The first scrape starts the count of leases, and a histogram of requests. A busy machine counts for a while.
const isCounted = async () => ((await scrape(service.address)).get('leasehold_data_key_seals')?.series.length ?? 0) > 0;
await until(isCounted);
const families = await scrape(service.address);

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}
const rules: readonly Rule[] = parse(read('deploy/monitoring/leasehold-alerts.yaml')).groups.flatMap(
  ({ rules: own }: { rules: Rule[] }) => own,
);

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}
const dashboard = JSON.parse(read('deploy/monitoring/dashboard.json'));
/** The variable of the dashboard that names the data source. */
const VARIABLE = /^\$\{datasource\}$/;
const panels: readonly Panel[] = dashboard.panels;

test('a wrong expression is found', () => {
  for (const wrong of [
    'leasehold_none',
    'rate(leasehold_batches_total)',
    'leasehold_batches_total',
    'rate(leasehold_queue_length[5m])',
    'rate(leasehold_batches_total{outcome="failed"}[5m])',
    'sum by (nothing) (rate(leasehold_batches_total[5m]))',
    'rate(leasehold_batches_total[5m]) >',
    'ratee(leasehold_batches_total[5m])',
  ]) {
    assert.notDeepEqual(problemsOf(wrong, families), [], wrong);
  }
});

test('every alert has a valid expression of existing metrics, a time, a severity and a runbook', () => {
  assert.ok(rules.length >= 15);
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, expr, for: duration, labels, annotations } of rules) {
    assert.match(alert, /^Leasehold[A-Za-z]+$/);
    assert.deepEqual(problemsOf(expr, families), [], alert);
    assert.match(duration, /^[1-9]\d*m$/);
    assert.ok(['critical', 'warning'].includes(labels['severity'] ?? ''), alert);
    assert.equal(annotations['runbook'], `docs/monitoring.md#${alert.toLowerCase()}`);
    assert.ok(page.includes(`\n### ${alert}\n`), `${alert} has no section`);
    const used = [...(annotations['summary'] ?? '').matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
    const removed = /\b(?:sum|max) by \(([^)]*)\)/.exec(expr)?.[1]?.split(', ');
    for (const label of used)
      assert.ok(removed?.includes(label ?? '') ?? true, `${alert}: ${label} is aggregated away`);
  }
  const headings = [...page.matchAll(/^### (Leasehold\w+)$/gm)].map(([, name]) => name);
  assert.deepEqual(
    headings,
    rules.map(({ alert }) => alert),
  );
});

test('the dashboard can be imported: a data source to choose, no overlap, valid expressions', () => {
  const [source] = dashboard.templating.list;
  assert.deepEqual([source.name, source.type, source.query], ['datasource', 'datasource', 'prometheus']);
  assert.equal(dashboard.id, undefined);
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const cells = new Set<string>();
  for (const { title, gridPos, datasource, targets = [], type } of panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(x < 24 && !cells.has(`${x} ${y}`), `${title} overlaps`);
        cells.add(`${x} ${y}`);
      }
    }
    if (type === 'row') continue;
    assert.match(datasource?.uid ?? '', VARIABLE);
    assert.ok(targets.length > 0, title);
    for (const target of targets) {
      assert.match(target.datasource.uid, VARIABLE);
      assert.deepEqual(problemsOf(target.expr, families), [], title);
    }
  }
});

test('the scrape example names the route, a token file and the rules', () => {
  const { scrape_configs: configs, rule_files: files } = parse(read('deploy/monitoring/prometheus.yaml'));
  assert.deepEqual(files, ['leasehold-alerts.yaml']);
  assert.deepEqual([configs[0].metrics_path, configs[0].job_name], ['/metrics', 'leasehold']);
  assert.ok(rules.some(({ expr }) => expr.includes('job="leasehold"')));
});

test('docs/monitoring.md lists every metric with its type, labels and help, and no other', () => {
  const rows = [...page.matchAll(/^\| `(leasehold_\w+)` \| (\w+) \| (.*) \| (.*) \|$/gm)].map((row) => row.slice(1));
  const expected = METRICS.map(({ name, kind, labels, help }) => [
    name,
    kind,
    labels.map((label) => `\`${label}\``).join(', '),
    help,
  ]);
  assert.deepEqual(rows, expected);
});
