/** Links to the next step: the simulator for a denied request, and the page on which a problem is resolved. */
import type { AttentionItem, AuditEntry } from '../../../../src/client/types.ts';
import { AGENT_NAME } from '../../../../src/core/names.ts';

const ACTIONS: readonly string[] = ['retrieve', 'use', 'list', 'store', 'delete'];

/** The simulator's URL; null for a denial that no policy of an agent decides. */
export function simulatorAddress(entry: AuditEntry): string | null {
  const { agent_name, action, resource, method, host, target_path } = entry;
  const isDecidedByPolicy = entry.event_type.startsWith('credential.') || entry.event_type.startsWith('lease.');
  if (!isDecidedByPolicy || !AGENT_NAME.test(agent_name) || !ACTIONS.includes(action) || resource === '*') return null;
  const query = new URLSearchParams({ view: 'simulator', for: agent_name, action, path: resource });
  if (method != null) query.set('method', method);
  // An entry records neither scheme nor port, so the simulator reads them from the targets.
  if (host != null) query.set('url', `//${host}${target_path ?? '/'}`);
  return `/access?${query}`;
}

/** The page and the text of the link. */
export function attentionLink({ kind, subject }: AttentionItem): { readonly href: string; readonly text: string } {
  if (kind !== 'denied_repeatedly') {
    return { href: `/credentials?path=${encodeURIComponent(subject)}`, text: 'Show the credential' };
  }
  const name = encodeURIComponent(subject.slice(subject.indexOf(':') + 1));
  return { href: `/log?result=denied&agent=${name}`, text: 'Show the denials' };
}
