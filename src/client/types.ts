/** What is sent and answered, by the one set of schemas; a value comes as a `Secret`. SOURCE: interface, sections 2 and 4. */
import type { Static } from 'typebox';
import type { Secret } from '../core/secret.ts';
import type * as schemas from '../http/schemas.ts';

export type StoreRequest = Omit<Static<typeof schemas.StoreBody>, 'value'> & { readonly value: string | Secret };
export type PolicyRequest = Static<typeof schemas.PolicyBody>;
export type PolicyReplacement = Static<typeof schemas.ReplacePolicyBody>;
export type SimulateRequest = Static<typeof schemas.SimulateBody>;
export type AgentRequest = Static<typeof schemas.AgentBody>;
export type RevokeRequest = Static<typeof schemas.RevokeLeasesBody>;

/** Numbers as numbers; the service takes them as text. */
type Filter<T> = { readonly [Field in keyof T]: Field extends 'limit' | 'offset' ? number : T[Field] };
export type PageFilter = Filter<Static<typeof schemas.PageQuery>>;
export type CredentialsFilter = Filter<Static<typeof schemas.CredentialsQuery>>;
export type LeasesFilter = Filter<Static<typeof schemas.LeasesQuery>>;
export type AuditFilter = Filter<Static<typeof schemas.AuditQuery>>;

/** As it comes over the wire. */
export type RetrievedText = Static<typeof schemas.Retrieved>;
export type Retrieved = Omit<RetrievedText, 'value'> & { readonly value: Secret };
export type StoredCredential = Static<typeof schemas.StoredCredential>;
export type ListedCredential = Static<typeof schemas.ListedCredential>;
export type CredentialMetadata = Static<typeof schemas.CredentialMetadata>;
export type Policy = Static<typeof schemas.Policy>;
export type Simulation = Static<typeof schemas.Simulation>;
export type RegisteredAgent = Static<typeof schemas.RegisteredAgent>;
export type Agent = Static<typeof schemas.Agent>;
export type Challenge = Static<typeof schemas.Challenge>;
export type SessionText = Static<typeof schemas.Session>;
export type Session = Omit<SessionText, 'session_id'> & { readonly session_id: Secret };
export type Lease = Static<typeof schemas.Lease>;
export type Revoked = Static<typeof schemas.Revoked>;
export type AuditEntry = Static<typeof schemas.AuditEntry>;
export type Verification = Static<typeof schemas.Verification>;
export type VerificationProgress = Static<typeof schemas.VerificationProgress>;
export type Health = Static<typeof schemas.Health>;
export type Meta = Static<typeof schemas.Meta>;
export type ErrorBody = Static<typeof schemas.ErrorBody>;

/** A page of a list, with how many there are in all. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly meta: Meta;
}
