/** Where a person continues: the simulator with a denied request, and the page on which a problem is resolved. */
import type { Attention, AuditEntry } from '../../../../src/client/types.ts';
import { AGENT_NAME } from '../../../../src/core/names.ts';

type AttentionItem = Attention['items'][number];

const ACTIONS: readonly string[] = ['retrieve', 'use', 'list', 'store', 'delete'];

/** Null for what no policy of an agent decides. */
export function simulatorAddress(entry: AuditEntry): string | null {
  const { agent_name, action, resource, method, host, target_path } = entry;
  const isDecidedByPolicy = entry.event_type.startsWith('credential.') || entry.event_type.startsWith('lease.');
  if (!isDecidedByPolicy || !AGENT_NAME.test(agent_name) || !ACTIONS.includes(action) || resource === '*') return null;
  const query = new URLSearchParams({ view: 'simulator', for: agent_name, action, path: resource });
  if (method != null) query.set('method', method);
  // An entry records neither scheme nor port; the simulator takes them from the targets.
  if (host != null) query.set('url', `//${host}${target_path ?? '/'}`);
  return `/access?${query}`;
}

const nameOf = (subject: string): string => encodeURIComponent(subject.slice(subject.indexOf(':') + 1));

/** The page and the text of the link. */
export function attentionLink({ kind, subject }: AttentionItem): { readonly href: string; readonly text: string } {
  switch (kind) {
    case 'lease_expiring':
    case 'credential_unused':
      return { href: `/credentials?path=${encodeURIComponent(subject)}`, text: 'Show the credential' };
    case 'denied_repeatedly':
      return { href: `/log?result=denied&agent=${nameOf(subject)}`, text: 'Show the denials' };
    case 'policy_grants_nothing':
      return { href: `/access?policy=${nameOf(subject)}`, text: 'Show the policy' };
    case 'agent_never_logged_in':
      return { href: `/agents?agent=${nameOf(subject)}`, text: 'Show the agent' };
    case 'checkpoint_late':
    case 'anchor_late':
      return { href: '/settings?section=about', text: 'Show the evidence of the log' };
    case 'backup_late':
      return { href: '/settings?section=backups', text: 'Show the backups' };
  }
}
