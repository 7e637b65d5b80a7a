/** Calls on operators. SOURCE: docs/operators.md. */
import { type ApiClient, type CallOptions, type ReplaceOptions, toSegment } from './api-client.ts';
import { NamedResources } from './named-resources.ts';
import type { OneTimeCode, Operator, OperatorReplacement, OperatorRequest, OperatorRotation } from './types.ts';

/** Calls on operators. Names are without the prefix `operator:`. */
export class Operators extends NamedResources<Operator> {
  constructor(api: ApiClient) {
    super(api, '/api/v1/operators');
  }

  add(body: OperatorRequest, options: CallOptions = {}): Promise<Operator> {
    return this.api.post<Operator>(this.path, body, options);
  }

  replace(name: string, body: OperatorReplacement, options: ReplaceOptions = {}): Promise<Operator> {
    return this.api.put<Operator>(this.addressOf(name), body, options);
  }

  /** Ends the operator's sessions and leases immediately. */
  async rotate(name: string, body: OperatorRotation, { signal }: CallOptions = {}): Promise<Operator> {
    const spec = { method: 'POST', path: `${this.addressOf(name)}/rotate`, body, retry: 'never', signal } as const;
    return (await this.api.ask<Operator>(spec)).data;
  }

  /** Creates a code with which the operator can register one passkey. */
  async invite(name: string, { signal }: CallOptions = {}): Promise<OneTimeCode> {
    const spec = { method: 'POST', path: `${this.addressOf(name)}/enrolment`, retry: 'always', signal } as const;
    return (await this.api.ask<OneTimeCode>(spec)).data;
  }

  /** Ends the operator's sessions and leases immediately. */
  async removePasskey(name: string, id: string, options: CallOptions = {}): Promise<void> {
    return this.api.remove(`${this.addressOf(name)}/passkeys/${toSegment(id, 'id')}`, options, 'id');
  }

  /** Ends the operator's sessions and leases immediately. */
  async remove(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.removeNamed(name, options);
  }
}
