/** The types of the HTTP interface, with values and tokens as `Secret`. */
import type * as api from '../api/types.ts';
import type { Secret } from '../core/secret.ts';

export type {
  Agent,
  AgentRequest,
  AuditEntry,
  AuditQuery as AuditFilter,
  Challenge,
  CredentialMetadata,
  CredentialsQuery as CredentialsFilter,
  ErrorBody,
  Health,
  Lease,
  LeasesQuery as LeasesFilter,
  ListedCredential,
  Meta,
  PageQuery as PageFilter,
  Policy,
  PolicyReplacement,
  PolicyRequest,
  RegisteredAgent,
  RetrieveResponse as RetrievedWire,
  RevokeRequest,
  RevokeResponse as Revoked,
  Session as SessionWire,
  SimulateRequest,
  Simulation,
  StoredCredential,
  Verification,
  VerificationProgress,
} from '../api/types.ts';

export type StoreRequest = Omit<api.StoreRequest, 'value'> & { readonly value: string | Secret };
export type Retrieved = Omit<api.RetrieveResponse, 'value'> & { readonly value: Secret };
export type Session = Omit<api.Session, 'session_id'> & { readonly session_id: Secret };

/** A page of a list; `meta` has the total. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly meta: api.Meta;
}
