/** The grants of a policy, as a sentence. */
import type { ApprovalTerms } from '../../../../src/vault/policies/approval-rule.ts';
import type { PolicyDraft, PolicyLimits } from '../../../../src/vault/policies/policy.ts';
import { countText, durationText } from '../../components/words.ts';

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
    ...(usesPerHour === null ? [] : [`${countText(usesPerHour, 'use')} an hour`]),
    ...(bytesPerHour === null ? [] : [`${countText(bytesPerHour, 'byte')} an hour`]),
    ...(concurrent === null ? [] : [`${countText(concurrent, 'use')} at the same time`]),
  ]);
}

const EXTENTS = {
  request: 'each request',
  endpoint: 'each endpoint',
  host: 'each host',
} as const;

export function sentenceOf({ principal, resources, actions, maxTtlSeconds, limits, approval }: PolicyDraft): string {
  const grant = `${principalText(principal)} may ${joined(actions)} ${joined(resources.map(resourceText))}`;
  const limited = limits === null ? '' : `, at most ${limitsText(limits)}`;
  const approved =
    approval === null
      ? ''
      : ` To ${approval.for}, ${EXTENTS[approval.each]} needs the approval of ${countText(approval.quorum, 'operator')}` +
        ` (${approval.scope}), within ${durationText(approval.timeout)}.`;
  return `${grant}, for up to ${durationText(maxTtlSeconds)} a lease${limited}.${approved}`;
}

/** The combined approval terms of all matching policies. */
export function approvalText({ each, quorum, timeoutSeconds, policyNames }: ApprovalTerms): string {
  return (
    `${countText(quorum, 'operator')} must approve ${EXTENTS[each]} within ${durationText(timeoutSeconds)}; ` +
    `required by ${joined(policyNames)}`
  );
}
