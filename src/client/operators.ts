/** Calls on operators. SOURCE: docs/operators.md. */
import {
  type ApiClient,
  type CallOptions,
  type ListAllOptions,
  type ReplaceOptions,
  type Tagged,
  toSegment,
} from './api-client.ts';
import type {
  OneTimeCode,
  Operator,
  OperatorReplacement,
  OperatorRequest,
  OperatorRotation,
  Page,
  PageFilter,
} from './types.ts';

const OPERATORS = '/api/v1/operators';
const addressOf = (name: string): string => `${OPERATORS}/${toSegment(name, 'name')}`;

/** Calls on operators. Names are without the prefix `operator:`. */
export class Operators {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(filter: PageFilter = {}, options: CallOptions = {}): Promise<Page<Operator>> {
    return this.#api.page<Operator>(OPERATORS, filter, options);
  }

  listAll(options: ListAllOptions = {}) {
    return this.#api.pages<Operator>(OPERATORS, {}, options);
  }

  async read(name: string, options: CallOptions = {}): Promise<Operator> {
    return this.#api.read<Operator>(addressOf(name), {}, options);
  }

  readTagged(name: string, options: CallOptions = {}): Promise<Tagged<Operator>> {
    return this.#api.readTagged<Operator>(addressOf(name), options);
  }

  add(body: OperatorRequest, options: CallOptions = {}): Promise<Operator> {
    return this.#api.post<Operator>(OPERATORS, body, options);
  }

  replace(name: string, body: OperatorReplacement, options: ReplaceOptions = {}): Promise<Operator> {
    return this.#api.put<Operator>(addressOf(name), body, options);
  }

  /** Ends the operator's sessions and leases immediately. */
  async rotate(name: string, body: OperatorRotation, { signal }: CallOptions = {}): Promise<Operator> {
    const spec = { method: 'POST', path: `${addressOf(name)}/rotate`, body, retry: 'never', signal } as const;
    return (await this.#api.ask<Operator>(spec)).data;
  }

  /** Creates a code with which the operator can register one passkey. */
  async invite(name: string, { signal }: CallOptions = {}): Promise<OneTimeCode> {
    const spec = { method: 'POST', path: `${addressOf(name)}/enrolment`, retry: 'always', signal } as const;
    return (await this.#api.ask<OneTimeCode>(spec)).data;
  }

  /** Ends the operator's sessions and leases immediately. */
  async removePasskey(name: string, id: string, options: CallOptions = {}): Promise<void> {
    return this.#api.remove(`${addressOf(name)}/passkeys/${toSegment(id, 'id')}`, options, 'id');
  }

  /** Ends the operator's sessions and leases immediately. */
  async remove(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.#api.remove(addressOf(name), options, 'name');
  }
}
