/** The types of the HTTP API, with values and tokens as `Secret`. */
import type * as api from '../api/types.ts';
import type { Secret } from '../vault/credentials/credential.ts';

export type * from '../api/types.ts';

export type StoreRequest = Omit<api.StoreBody, 'value'> & { readonly value: string | Secret };
export type Retrieved = Omit<api.RetrievedWire, 'value'> & { readonly value: Secret };
/** The values of `env` contain the token. */
export type AgentUseLease = Omit<api.UseLeaseWire, 'token' | 'env'> & {
  readonly token: Secret;
  readonly env: Readonly<Record<string, Secret>>;
};
/** The caller's own session. `session_id` is null for a browser's session. */
export type CallerSession = Omit<api.CurrentSessionWire, 'session_id'> & { readonly session_id: Secret | null };
export type AgentSession = Omit<api.SessionWire, 'session_id'> & { readonly session_id: Secret };

export interface Page<T> {
  readonly data: readonly T[];
  readonly meta: api.Meta;
}
