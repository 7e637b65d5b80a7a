/** The schemas of the overview lists and their queries. SOURCE: docs/api.md, "Overview". */
import { Type } from 'typebox';
import { MAX_PATH_LENGTH, PATH_PART } from '../core/path.ts';
import * as fields from './fields.ts';

const {
  StrictObject,
  StringEnum,
  Nullable,
  NonNegativeInteger,
  PositiveInteger,
  NullableText,
  Text,
  Timestamp,
  MATRIX_LIMITS,
  TREE_LIMITS,
  SEARCH_LIMITS,
  MAX_SEARCH_LENGTH,
} = fields;

const limit = ({ most, byDefault }: { readonly most: number; readonly byDefault: number }) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: most, description: `${byDefault} by default.` }));
const offset = Type.Optional(NonNegativeInteger);
/** An empty prefix is none. */
const ANY_PREFIX = { ...fields.Path, pattern: `^(?:${PATH_PART})?$`, minLength: 0 };

export const MatrixQuery = StrictObject({
  agent: Type.Optional(
    Type.String({
      maxLength: fields.MAX_AGENT_PREFIX_LENGTH,
      description: 'The beginning of names: only these agents; all by default.',
    }),
  ),
  agent_offset: offset,
  agent_limit: limit(MATRIX_LIMITS.agents),
  prefix: Type.Optional(
    Type.String({ ...ANY_PREFIX, description: 'A path: only it and the credentials below it; all by default.' }),
  ),
  path_offset: offset,
  path_limit: limit(MATRIX_LIMITS.paths),
});
export const TreeQuery = StrictObject({
  prefix: Type.Optional(
    Type.String({ ...ANY_PREFIX, description: 'A path: the level below it; the first level by default.' }),
  ),
  limit: limit(TREE_LIMITS),
  after: Type.Optional(
    Type.String({
      pattern: `^${PATH_PART}/?$`,
      minLength: 1,
      maxLength: MAX_PATH_LENGTH + 1,
      description: 'The `next` of the previous page.',
    }),
  ),
});
export const SearchQuery = StrictObject({
  q: Type.String({
    minLength: 1,
    maxLength: MAX_SEARCH_LENGTH,
    description: 'A part of a name or path, in any case.',
  }),
  limit: limit(SEARCH_LIMITS),
});

export const MatrixDecision = StrictObject({ allowed: Type.Boolean(), policy_name: NullableText, reason: Text });
export const MatrixAgent = StrictObject({ name: fields.AgentName });
export const Matrix = StrictObject({
  agents: Type.Array(MatrixAgent),
  agents_total: NonNegativeInteger,
  paths: Type.Array(fields.Path),
  paths_total: NonNegativeInteger,
  actions: Type.Array(fields.Action),
  decisions: Type.Array(MatrixDecision, { description: 'Each different decision once.' }),
  cells: Type.Array(Type.Array(Type.Array(NonNegativeInteger)), {
    description: 'By agent, path and action: the index of the decision in `decisions`.',
  }),
});

export const TreeEntry = StrictObject({
  name: Type.String({ description: 'The last segment of the path.' }),
  kind: StringEnum(['directory', 'credential']),
  path: fields.Path,
  credentials: Type.Optional(
    Nullable<number>(
      Type.Integer({ ...PositiveInteger, description: 'Below a directory; null where there are too many to count.' }),
    ),
  ),
  type: Type.Optional(fields.CredentialType),
  updated_at: Type.Optional(Timestamp),
});
export const Tree = StrictObject({
  prefix: Type.String({ description: 'Empty for the first level.' }),
  entries: Type.Array(TreeEntry),
  next: Nullable<string>(Type.String({ description: '`after` of the next page; null at the end.' })),
});

export const SearchResult = StrictObject({
  kind: StringEnum(['credential', 'agent', 'policy', 'operator']),
  name: Text,
  description: Text,
});
export const SearchResults = StrictObject({
  complete: Type.Boolean({ description: 'Whether every name was compared.' }),
  results: Type.Array(SearchResult),
});
