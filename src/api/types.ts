/** The types of the interface, derived from its schemas. It exports only types, so importing it loads no schema. */
import type { Static } from 'typebox';
import type * as requests from './requests.ts';
import type * as responses from './responses.ts';

export type PageQuery = Static<typeof requests.PageQuery>;
export type ListCredentialsQuery = Static<typeof requests.ListCredentialsQuery>;
export type LeasesQuery = Static<typeof requests.LeasesQuery>;
export type AuditListQuery = Static<typeof requests.AuditQuery>;

export type StoreBody = Static<typeof requests.StoreRequest>;
export type PolicyRequest = Static<typeof requests.PolicyRequest>;
export type PolicyReplacement = Static<typeof requests.PolicyReplacement>;
export type SimulateRequest = Static<typeof requests.SimulateRequest>;
export type AgentRequest = Static<typeof requests.AgentRequest>;
export type RevokeRequest = Static<typeof requests.RevokeRequest>;

export type RetrieveResponse = Static<typeof responses.RetrieveResponse>;
export type StoredCredential = Static<typeof responses.StoredCredential>;
export type ListedCredential = Static<typeof responses.ListedCredential>;
export type CredentialMetadata = Static<typeof responses.CredentialMetadata>;
export type PolicyResponse = Static<typeof responses.Policy>;
export type CredentialTargets = Static<typeof responses.CredentialTargets>;
export type CatalogueService = Static<typeof responses.CatalogueService>;
export type UseLease = Static<typeof responses.UseLease>;
export type UseLeaseBody = Static<typeof requests.UseLeaseRequest>;
export type UseBody = Static<typeof requests.UseRequest>;
export type UseResponse = Static<typeof responses.UseResponse>;
export type Simulation = Static<typeof responses.Simulation>;
export type RegisteredAgent = Static<typeof responses.RegisteredAgent>;
export type AgentResponse = Static<typeof responses.Agent>;
export type ChallengeResponse = Static<typeof responses.Challenge>;
export type SessionResponse = Static<typeof responses.Session>;
export type LeaseResponse = Static<typeof responses.Lease>;
export type CredentialExposure = Static<typeof responses.CredentialExposure>;
export type ExposureQuery = Static<typeof requests.ExposureQuery>;
export type PanicRequest = Static<typeof requests.PanicRequest>;
export type Panicked = Static<typeof responses.Panicked>;
export type RevokeResponse = Static<typeof responses.RevokeResponse>;
export type AuditEntryResponse = Static<typeof responses.AuditEntry>;
export type Verification = Static<typeof responses.Verification>;
export type VerificationProgress = Static<typeof responses.VerificationProgress>;
export type Health = Static<typeof responses.Health>;
export type ServiceStatus = Health['status'];
export type Meta = Static<typeof responses.Meta>;
export type ErrorBody = Static<typeof responses.ErrorBody>;
