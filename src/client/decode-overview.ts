/** Decoders of the overview. */
import { type Decoder, invalid, listOf, object } from './decoders.ts';
import type * as types from './types.ts';

const decodeIndex: Decoder<number> = (body) => {
  if (typeof body !== 'number' || !Number.isSafeInteger(body)) throw invalid('an index must be integer');
  return body;
};
const decodeDecisions = listOf(
  object<types.Matrix['decisions'][number]>({ allowed: 'boolean', policy_name: 'text or null', reason: 'text' }),
);
const decodeMatrixFields = object<types.Matrix>({
  agents: listOf(object<types.Matrix['agents'][number]>({ name: 'text' })),
  agents_total: 'integer',
  paths: 'list of text',
  paths_total: 'integer',
  actions: 'list of text',
  decisions: decodeDecisions,
  cells: listOf(listOf(listOf(decodeIndex))),
});
/** Every cell has a decision for each action. */
export const decodeMatrix: Decoder<types.Matrix> = (body) => {
  const matrix = decodeMatrixFields(body);
  const { agents, paths, actions, decisions, cells } = matrix;
  const fits =
    cells.length === agents.length &&
    cells.every((row) => row.length === paths.length && row.every((cell) => cell.length === actions.length)) &&
    cells.every((row) => row.every((cell) => cell.every((index) => decisions[index] !== undefined)));
  if (!fits) throw invalid('each cell must have the index of a decision for each action');
  return matrix;
};

export const decodeTree = object<types.Tree>({
  prefix: 'text',
  entries: listOf(
    object<types.Tree['entries'][number]>({
      name: 'text',
      kind: 'text',
      path: 'text',
      credentials: 'optional integer',
      type: 'optional text',
      updated_at: 'optional text',
    }),
  ),
  next: 'text or null',
});
export const decodeSearch = object<types.SearchResults>({
  complete: 'boolean',
  results: listOf(object<types.SearchResults['results'][number]>({ kind: 'text', name: 'text', description: 'text' })),
});
export const decodeAttention = listOf(
  object<types.AttentionItem>({
    kind: 'text',
    subject: 'text',
    text: 'text',
    count: 'integer or null',
    since: 'text or null',
  }),
);
export const decodeActivity = listOf(
  object<types.ActivityMinute>({ at: 'text', retrievals: 'integer', uses: 'integer', denials: 'integer' }),
);
export const decodeNodes = listOf(
  object<types.VaultNode>({
    name: 'text',
    version: 'text',
    started_at: 'text',
    status: 'text or null',
    is_self: 'boolean',
    seen_at: 'text',
    newest_seq: 'integer or null',
  }),
);
