/** The grants of a policy, as a sentence. */
import type { ApprovalTerms } from '../../../../src/vault/policies/approval-rule.ts';
import type { PolicyDraft, PolicyLimits } from '../../../../src/vault/policies/policy.ts';

const UNITS = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
] as const;

const counted = (count: number, unit: string): string =>
  `${count.toLocaleString('en')} ${unit}${count === 1 ? '' : 's'}`;

/** A duration such as `5 minutes`, or `90 seconds` if no larger unit fits. */
export function durationText(seconds: number): string {
  const [size, unit] = UNITS.find(([each]) => seconds % each === 0) ?? [1, 'second'];
  return counted(seconds / size, unit);
}

const joined = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;

function principalText(principal: string): string {
  const [kind, name = ''] = principal.split(':', 2);
  const one = kind === 'operator' ? 'operator' : 'agent';
  if (name === '*') return `Every ${one}`;
  if (name.endsWith('*')) return `Every ${one} whose name begins with ${name.slice(0, -1)}`;
  return `The ${one} ${name}`;
}

function resourceText(pattern: string): string {
  if (pattern === '*') return 'every credential';
  return pattern.endsWith('/*') ? `everything below ${pattern.slice(0, -2)}` : pattern;
}

function limitsText({ usesPerHour, bytesPerHour, concurrent }: PolicyLimits): string {
  return joined([
    ...(usesPerHour === null ? [] : [`${counted(usesPerHour, 'use')} an hour`]),
    ...(bytesPerHour === null ? [] : [`${counted(bytesPerHour, 'byte')} an hour`]),
    ...(concurrent === null ? [] : [`${counted(concurrent, 'use')} at the same time`]),
  ]);
}

const EXTENTS = {
  request: 'each request',
  endpoint: 'each endpoint',
  host: 'each host',
} as const;

export function sentenceOf({ principal, resources, actions, maxTtlSeconds, limits, approval }: PolicyDraft): string {
  const grant = `${principalText(principal)} may ${joined(actions)} ${joined(resources.map(resourceText))}`;
  const most = limits === null ? '' : `, at most ${limitsText(limits)}`;
  const people =
    approval === null
      ? ''
      : ` To ${approval.for}, ${EXTENTS[approval.each]} needs the approval of ${counted(approval.quorum, 'operator')}` +
        ` (${approval.scope}), within ${durationText(approval.timeout)}.`;
  return `${grant}, for up to ${durationText(maxTtlSeconds)} a lease${most}.${people}`;
}

/** The combined approval terms of all matching policies. */
export function approvalText({ each, quorum, timeoutSeconds, policyNames }: ApprovalTerms): string {
  return (
    `${counted(quorum, 'operator')} must approve ${EXTENTS[each]} within ${durationText(timeoutSeconds)}; ` +
    `required by ${joined(policyNames)}`
  );
}
