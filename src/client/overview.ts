/** Calls that show the vault as a whole. SOURCE: docs/api.md, "Overview". */
import { type CallOptions, Calls } from './api-client.ts';
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

export class Overview extends Calls {
  matrix(query: MatrixQuery = {}, options: CallOptions = {}): Promise<Matrix> {
    return this.api.read('/api/v1/matrix', query, options);
  }

  tree(query: TreeQuery = {}, options: CallOptions = {}): Promise<Tree> {
    return this.api.read('/api/v1/tree', query, options);
  }

  search(query: SearchQuery, options: CallOptions = {}): Promise<SearchResults> {
    return this.api.read('/api/v1/search', query, options);
  }

  attention(options: CallOptions = {}): Promise<AttentionItem[]> {
    return this.api.read('/api/v1/attention', {}, options);
  }

  activity(options: CallOptions = {}): Promise<ActivityMinute[]> {
    return this.api.read('/api/v1/activity', {}, options);
  }

  nodes(options: CallOptions = {}): Promise<VaultNode[]> {
    return this.api.read('/api/v1/nodes', {}, options);
  }
}
