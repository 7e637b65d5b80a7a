/** The effect of a policy change, field by field, with marks where it grants more than before. */

import { compare, type FieldChange, shownFields } from '../../../../src/vault/policies/comparison.ts';
import type { PolicyDraft } from '../../../../src/vault/policies/policy.ts';
import { Badge } from '../../components/texts.tsx';

interface Props {
  /** Null for a new policy. */
  readonly before: PolicyDraft | null;
  readonly after: PolicyDraft;
}

/** Labels of fields whose names are not words. */
const LABELS: Readonly<Record<string, string>> = { max_ttl: 'longest lease, in seconds' };

const toTexts = (value: FieldChange['from']): readonly string[] => [value].flat().map(String);

/** The fields of a new policy, all of which grant more than before. */
function fieldsOf(draft: PolicyDraft): readonly FieldChange[] {
  return Object.entries(shownFields(draft)).map(([field, to]) => ({ field, from: [], to, widens: false }));
}

export function PolicyDiff({ before, after }: Props) {
  const changes = before === null ? fieldsOf(after) : compare(before, after);
  if (changes.length === 0) return <p className="hint">Nothing changes.</p>;
  const widens = before === null || changes.some((change) => change.widens);
  return (
    <table className="diff">
      <caption className="visually-hidden">{`Changes of the policy ${after.name}`}</caption>
      <thead>
        <tr>
          <th scope="col">{before === null ? 'New policy' : 'Policy'}</th>
          <td>
            <code>{after.name}</code>
            {widens && <Badge text="widens access" tone="warning" />}
          </td>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ field, from, to, widens: isWider }) => {
          return (
            <tr key={field}>
              <th scope="row">
                {LABELS[field] ?? field} {isWider && <Badge text="wider" tone="warning" />}
              </th>
              <td>
                <DiffLines from={toTexts(from)} to={toTexts(to)} />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** Shows the removed texts, then the new ones. */
function DiffLines({ from, to }: { readonly from: readonly string[]; readonly to: readonly string[] }) {
  const removed = from.filter((text) => !to.includes(text));
  return (
    <>
      {removed.map((text) => (
        <del key={text}>{`− ${text}`}</del>
      ))}
      {to.map((text) => {
        if (!from.includes(text)) return <ins key={text}>{`+ ${text}`}</ins>;
        return <span key={text} className="same">{`  ${text}`}</span>;
      })}
    </>
  );
}
