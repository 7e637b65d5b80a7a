// deploy/monitoring and docs/monitoring.md against the declared metrics: names, labels and runbooks.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { METRICS } from '../../src/server/metrics/metrics.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8');
const page = read('docs/monitoring.md');

/** The labels of a metric by the names of its series; a histogram has three. */
const labelsOf = new Map(
  METRICS.flatMap(({ name, kind, labels }) =>
    kind === 'histogram'
      ? ['_bucket', '_sum', '_count'].map((end) => [`${name}${end}`, [...labels, 'le']] as const)
      : [[name, labels] as const],
  ),
);

/** Asserts that the expression names existing metrics, and selects by their labels. */
function assertKnown(expr: string, title: string): void {
  const used = [...expr.matchAll(/\b(leasehold_\w+)(?:\{([^}]*)\})?/g)];
  assert.ok(used.length > 0 || /\b(?:up|process_|nodejs_)/.test(expr), title);
  for (const [, name = '', selectors = ''] of used) {
    const labels = labelsOf.get(name) ?? assert.fail(`${title}: ${name}`);
    for (const [, label = ''] of selectors.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g))
      assert.ok(['job', 'instance', ...labels].includes(label), `${title}: ${name} has no label ${label}`);
  }
}

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
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}
const dashboard = JSON.parse(read('deploy/monitoring/dashboard.json'));
/** The variable of the dashboard that names the data source. */
const VARIABLE = /^\$\{datasource\}$/;
const panels: readonly Panel[] = dashboard.panels;

test('every alert has an expression of existing metrics, a time, a severity and a runbook', () => {
  assert.ok(rules.length >= 15);
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, expr, for: duration, labels, annotations } of rules) {
    assert.match(alert, /^Leasehold[A-Za-z]+$/);
    assertKnown(expr, alert);
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

test('the dashboard can be imported: a data source to choose, expressions of existing metrics', () => {
  const [source] = dashboard.templating.list;
  assert.deepEqual([source.name, source.type, source.query], ['datasource', 'datasource', 'prometheus']);
  assert.equal(dashboard.id, undefined);
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  for (const { title, datasource, targets = [], type } of panels) {
    if (type === 'row') continue;
    assert.match(datasource?.uid ?? '', VARIABLE);
    assert.ok(targets.length > 0, title);
    for (const target of targets) {
      assert.match(target.datasource.uid, VARIABLE);
      assertKnown(target.expr, title);
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
