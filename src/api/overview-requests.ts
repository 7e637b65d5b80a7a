/** The schemas of queries of the overview lists. SOURCE: docs/api.md, "Overview". */
import { MAX_PATH_LENGTH, PATH_PART } from '../core/path.ts';
import * as fields from './fields.ts';
import {
  MATRIX_LIMITS,
  MAX_AGENT_PREFIX_LENGTH,
  MAX_SEARCH_LENGTH,
  SEARCH_LIMITS,
  TREE_LIMITS,
} from './list-limits.ts';
import { Type } from './schema.ts';

const { object, whole } = fields;

const limit = ({ most, byDefault }: { readonly most: number; readonly byDefault: number }) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: most, description: `${byDefault} by default.` }));
const offset = Type.Optional(whole(0));
/** Empty, as if it were left out. */
const ANY_PREFIX = { ...fields.Path, pattern: `^(?:${PATH_PART})?$`, minLength: 0 };

export const MatrixQuery = object({
  agent: Type.Optional(
    Type.String({
      maxLength: MAX_AGENT_PREFIX_LENGTH,
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
export const TreeQuery = object({
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
export const SearchQuery = object({
  q: Type.String({
    minLength: 1,
    maxLength: MAX_SEARCH_LENGTH,
    description: 'A part of a name or path, in any case.',
  }),
  limit: limit(SEARCH_LIMITS),
});
