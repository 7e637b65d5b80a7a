/** The calls that policies, agents and operators have in common: a list, and one row by its name. */
import {
  type ApiClient,
  type CallOptions,
  type ListAllOptions,
  type ReplaceOptions,
  type Tagged,
  toSegment,
} from './api-client.ts';
import type { Page, PageFilter } from './types.ts';

export class NamedResources<T> {
  readonly #api: ApiClient;
  protected readonly path: string;

  constructor(api: ApiClient, path: string) {
    this.#api = api;
    this.path = path;
  }

  /** WHY not a field: whoever prints an object sees its fields. */
  protected get api(): ApiClient {
    return this.#api;
  }

  /** @throws LeaseholdError INVALID_REQUEST */
  protected addressOf(name: string): string {
    return `${this.path}/${toSegment(name, 'name')}`;
  }

  list(filter: PageFilter = {}, options: CallOptions = {}): Promise<Page<T>> {
    return this.#api.page<T>(this.path, filter, options);
  }

  listAll(options: ListAllOptions = {}) {
    return this.#api.pages<T>(this.path, {}, options);
  }

  async read(name: string, options: CallOptions = {}): Promise<T> {
    return this.#api.read<T>(this.addressOf(name), {}, options);
  }

  async readTagged(name: string, options: CallOptions = {}): Promise<Tagged<T>> {
    return this.#api.readTagged<T>(this.addressOf(name), options);
  }

  protected async removeNamed(name: string, options: ReplaceOptions): Promise<void> {
    return this.#api.remove(this.addressOf(name), options, 'name');
  }
}
