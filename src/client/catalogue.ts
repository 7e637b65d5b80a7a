/** The catalogue of services. SOURCE: docs/api.md, "Targets". */
import type { ApiClient, CallOptions } from './api-client.ts';
import { listOf, object } from './decoders.ts';
import type { CatalogueService } from './types.ts';

const decodeService = object<CatalogueService>({
  name: 'text',
  title: 'text',
  unsupported: 'text or null',
  needs_host: 'boolean',
  targets: listOf(
    object<CatalogueService['targets'][number]>({
      origin: 'text',
      paths: 'list of text',
      methods: 'list of text',
      allow_networks: 'list of text',
      ca_pem: 'text or null',
    }),
  ),
  placement: object<CatalogueService['placement']>({
    kind: 'text',
    name: 'optional text',
    template: 'optional text',
    username: 'optional text',
  }),
  variables: listOf(
    object<CatalogueService['variables'][number]>({
      name: 'text',
      holds: 'text',
      suffix: 'optional text',
      value: 'optional text',
      read_by: 'text',
    }),
  ),
  key_prefixes: 'list of text',
  denied: 'list of text',
  notes: 'list of text',
});

export function listServices(api: ApiClient, options: CallOptions): Promise<CatalogueService[]> {
  return api.read('/api/v1/services', {}, listOf(decodeService), options);
}
