/** Calls that show the vault as a whole. SOURCE: docs/api.md, "Overview". */
import type { ApiClient, CallOptions } from './api-client.ts';
import type {
  ActivityMinute,
  AttentionItem,
  Matrix,
  MatrixQuery,
  SearchQuery,
  SearchResults,
  Tree,
  TreeQuery,
  VaultNode,
} from './types.ts';

export class Overview {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** The decisions of a page of agents on a page of credentials. */
  matrix(query: MatrixQuery = {}, options: CallOptions = {}): Promise<Matrix> {
    return this.#api.read<Matrix>('/api/v1/matrix', query, options);
  }

  /** One level of the tree of credential paths. */
  tree(query: TreeQuery = {}, options: CallOptions = {}): Promise<Tree> {
    return this.#api.read<Tree>('/api/v1/tree', query, options);
  }

  /** The credentials, agents, policies and operators with the text in their names. */
  search(query: SearchQuery, options: CallOptions = {}): Promise<SearchResults> {
    return this.#api.read<SearchResults>('/api/v1/search', query, options);
  }

  /** What an operator should look at. */
  attention(options: CallOptions = {}): Promise<AttentionItem[]> {
    return this.#api.read<AttentionItem[]>('/api/v1/attention', {}, options);
  }

  /** What the node that responds decided in each minute of the last hour, oldest first. */
  activity(options: CallOptions = {}): Promise<ActivityMinute[]> {
    return this.#api.read<ActivityMinute[]>('/api/v1/activity', {}, options);
  }

  /** The node that responds, and the others. */
  nodes(options: CallOptions = {}): Promise<VaultNode[]> {
    return this.#api.read<VaultNode[]>('/api/v1/nodes', {}, options);
  }
}
