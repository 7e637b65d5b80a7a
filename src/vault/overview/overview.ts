/** The advisories, activity and nodes of the overview. SOURCE: docs/api.md, "Overview". */
import { nullable, type ValueOf } from '../../engine/field.ts';
import { anyText, boolean, count, oneOf, time } from '../../engine/kinds.ts';
import { shape } from '../../engine/resource.ts';

const ADVISORY = {
  kind: oneOf(['denied_repeatedly', 'lease_expiring', 'credential_unused']),
  /** The resource, in the form of audit entries. */
  subject: anyText({ description: 'A path, `agent:<name>` or `operator:<name>`.' }),
  text: anyText({ description: 'What is the case, and what to do.' }),
  count: nullable(count()),
  since: nullable(time()),
};
export const AttentionItem = shape('AttentionItem', ADVISORY);
export type Advisory = ValueOf<typeof ADVISORY>;

/** `at` is the beginning of the minute. */
export const ActivityMinute = shape('ActivityMinute', {
  at: time(),
  retrievals: count(),
  uses: count(),
  denials: count(),
});

const NODE = {
  name: anyText({ description: 'Host name and process id.' }),
  version: anyText(),
  startedAt: time({ wire: 'started_at' }),
  /** Null for another node, because only the node itself knows its status. `newestSeq` is null for the same reason. */
  status: nullable(anyText()),
  isSelf: boolean({ wire: 'is_self' }),
  seenAt: time({ wire: 'seen_at' }),
  newestSeq: nullable(count({ wire: 'newest_seq' })),
};
export const Node = shape('Node', NODE);
export type SeenNode = ValueOf<typeof NODE>;
