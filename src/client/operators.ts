/** Calls on operators. SOURCE: docs/operators.md. */
import {
  type ApiClient,
  type CallOptions,
  type ListAllOptions,
  type ReplaceOptions,
  type Tagged,
  toSegment,
} from './api-client.ts';
import { listOf, nullable, object } from './decoders.ts';
import { decodeOneTimeCode, decodePasskey } from './sign-in.ts';
import type {
  OneTimeCode,
  Operator,
  OperatorReplacement,
  OperatorRequest,
  OperatorRotation,
  Page,
  PageFilter,
} from './types.ts';

const decodeOperator = object<Operator>({
  name: 'text',
  description: 'text',
  roles: 'list of text',
  public_key: 'text or null',
  passkeys: listOf(decodePasskey),
  identity: nullable(
    object<NonNullable<Operator['identity']>>({
      issuer: 'text',
      subject: 'text or null',
      email: 'text or null',
    }),
  ),
  added_at: 'text',
});

const OPERATORS = '/api/v1/operators';
const addressOf = (name: string): string => `${OPERATORS}/${toSegment(name, 'name')}`;

/** Names are without the prefix `operator:`. */
export class Operators {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(filter: PageFilter = {}, options: CallOptions = {}): Promise<Page<Operator>> {
    return this.#api.page(OPERATORS, filter, decodeOperator, options);
  }

  listAll(options: ListAllOptions = {}) {
    return this.#api.pages(OPERATORS, {}, decodeOperator, options);
  }

  async read(name: string, options: CallOptions = {}): Promise<Operator> {
    return this.#api.read(addressOf(name), {}, decodeOperator, options);
  }

  /** Reads the resource with the tag of its state, which `ifMatch` takes. */
  readTagged(name: string, options: CallOptions = {}): Promise<Tagged<Operator>> {
    return this.#api.readTagged(addressOf(name), decodeOperator, options);
  }

  add(body: OperatorRequest, options: CallOptions = {}): Promise<Operator> {
    return this.#api.post(OPERATORS, body, decodeOperator, options);
  }

  /** Replaces the roles and the description. */
  replace(name: string, body: OperatorReplacement, options: ReplaceOptions = {}): Promise<Operator> {
    return this.#api.put(addressOf(name), body, decodeOperator, options);
  }

  /** Ends the operator's sessions and leases immediately. */
  async rotate(name: string, body: OperatorRotation, { signal }: CallOptions = {}): Promise<Operator> {
    const spec = { method: 'POST', path: `${addressOf(name)}/rotate`, body, retry: 'never', signal } as const;
    return (await this.#api.ask(spec, decodeOperator)).data;
  }

  /** A code with which the operator registers a passkey, once. */
  async invite(name: string, { signal }: CallOptions = {}): Promise<OneTimeCode> {
    const spec = { method: 'POST', path: `${addressOf(name)}/enrolment`, retry: 'always', signal } as const;
    return (await this.#api.ask(spec, decodeOneTimeCode)).data;
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
