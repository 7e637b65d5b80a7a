/** How much one response of an overview list has. */

interface Limits {
  readonly most: number;
  readonly byDefault: number;
}

export const MATRIX_LIMITS: { readonly agents: Limits; readonly paths: Limits } = {
  agents: { most: 50, byDefault: 20 },
  paths: { most: 100, byDefault: 50 },
};
export const TREE_LIMITS: Limits = { most: 1000, byDefault: 100 };
export const SEARCH_LIMITS: Limits = { most: 50, byDefault: 20 };
export const MAX_SEARCH_LENGTH = 128;
/** As an agent's name. */
export const MAX_AGENT_PREFIX_LENGTH = 63;
export const MAX_BUCKETS = 500;
