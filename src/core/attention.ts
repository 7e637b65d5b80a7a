/** What an operator should look at. SOURCE: docs/api.md, "Overview". */

export const ATTENTION_KINDS = [
  'lease_expiring',
  'credential_unused',
  'denied_repeatedly',
  'policy_grants_nothing',
  'agent_never_logged_in',
  'anchor_late',
  'checkpoint_late',
  'backup_late',
] as const;
type AttentionKind = (typeof ATTENTION_KINDS)[number];

export interface AttentionItem {
  readonly kind: AttentionKind;
  /** As the resource of an entry: a path, `policy:<name>`, `agent:<name>`, or `*`. */
  readonly subject: string;
  /** What is the case, and what to do. */
  readonly text: string;
  readonly count: number | null;
  /** Milliseconds since 1970. */
  readonly since: number | null;
}
