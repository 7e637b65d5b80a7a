/**
 * Checks PromQL with Prometheus' own grammar, and the rules that only `promtool` has otherwise: functions of ranges get
 * ranges, counters are used through a rate, and metrics and labels exist.
 */
import type { SyntaxNodeRef } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';
import type { Family } from './prometheus-text.ts';

/** Functions that take a range, among those that are used. */
const OF_RANGES = new Set(['rate', 'increase', 'irate', 'delta', 'max_over_time']);
/** Added by Prometheus to every series. */
const ADDED_LABELS = ['instance', 'job'];

interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
  /** The function around it, if any. */
  readonly callee: string | null;
  readonly isRange: boolean;
}

/** What is wrong with the expression; empty if nothing is. */
export function problemsOf(expression: string, families: ReadonlyMap<string, Family>): string[] {
  // A variable of Grafana stands where a duration is.
  const text = expression.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*');
  const problems: string[] = [];
  const selectors: Selector[] = [];
  const names = (node: SyntaxNodeRef): string => text.slice(node.from, node.to);
  parser.parse(text).iterate({
    enter(node) {
      if (node.type.isError) problems.push(`a syntax error at ${node.from}: ${expression}`);
      if (node.name === 'VectorSelector') selectors.push(toSelector(node, text));
      if (node.name === 'GroupingLabels') {
        const labels = names(node).match(/[a-z_]+/g) ?? [];
        const known = new Set([...ADDED_LABELS, 'le', ...[...families.values()].flatMap(labelsOf)]);
        for (const label of labels) if (!known.has(label)) problems.push(`unknown label ${label}: ${expression}`);
      }
    },
  });
  if (selectors.length === 0) problems.push(`no metric: ${expression}`);
  return [...problems, ...selectors.flatMap((selector) => checkSelector(selector, families))];
}

function toSelector({ node }: SyntaxNodeRef, text: string): Selector {
  const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
  const range = node.parent?.name === 'MatrixSelector' ? node.parent : null;
  const call = (range ?? node).parent?.parent;
  const callee = call?.name === 'FunctionCall' ? call.getChild('FunctionIdentifier') : null;
  const textOf = (part: { from: number; to: number } | null): string =>
    part === null ? '' : text.slice(part.from, part.to);
  return {
    metric: textOf(node.getChild('Identifier')),
    labels: matchers.map((matcher) => textOf(matcher.getChild('LabelName'))),
    callee: callee == null ? null : textOf(callee),
    isRange: range !== null,
  };
}

const labelsOf = ({ series }: Family): string[] => series.flatMap(({ labels }) => Object.keys(labels));

function checkSelector({ metric, labels, callee, isRange }: Selector, families: ReadonlyMap<string, Family>): string[] {
  // Made by Prometheus itself.
  if (metric === 'up') return [];
  const family = families.get(metric) ?? families.get(metric.replace(/_(?:bucket|sum|count)$/, ''));
  if (family === undefined) return [`${metric} is not on the page of metrics`];
  const known = new Set([...ADDED_LABELS, ...labelsOf(family)]);
  // A metric of the other store has no series here.
  const unknown = family.series.length === 0 ? [] : labels.filter((label) => !known.has(label));
  const takesRange = callee !== null && OF_RANGES.has(callee);
  const isCounter = family.type === 'counter' || family.type === 'histogram';
  return [
    ...unknown.map((label) => `${metric} has no label ${label}`),
    ...(isRange === takesRange ? [] : [`${metric}: ${callee ?? 'no function'} and a range do not fit`]),
    ...(isCounter && !isRange ? [`${metric} is a counter, which is used through a rate`] : []),
    ...(!isCounter && isRange && callee !== 'max_over_time' ? [`${metric} is a gauge, which has no rate`] : []),
  ];
}
