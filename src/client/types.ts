/** The types of the HTTP API, with values and tokens as `Secret`. */
import type * as api from '../api/types.ts';
import type { Secret } from '../vault/credentials/credential.ts';

export type {
  ActivityMinute,
  AgentRequest,
  AgentResponse as Agent,
  AgentRotation,
  ApprovalResponse as Approval,
  ApprovalsQuery as ApprovalsFilter,
  AssertionOptions,
  AssertionRequest,
  AttendedSlot,
  AttentionItem,
  AuditEntryResponse as AuditEntry,
  AuditListQuery as AuditFilter,
  BrowserSession,
  CatalogueService,
  ChallengeResponse as Challenge,
  Checkpoint,
  ConsistencyProof,
  CredentialExposure,
  CredentialMetadata,
  CredentialTargets,
  CurrentSessionResponse as CurrentSessionWire,
  EntryProof,
  ErrorBody,
  ExposureQuery as ExposureFilter,
  Health,
  Held,
  KeySlotRequest,
  KeySlotResponse as KeySlot,
  KeySlotTest,
  LeaseResponse as Lease,
  LeasesQuery as LeasesFilter,
  ListCredentialsQuery as CredentialsFilter,
  ListedApproval,
  ListedCredential,
  Matrix,
  MatrixQuery,
  Meta,
  NodeResponse as VaultNode,
  OidcOptions,
  OidcRequest,
  OneTimeCode,
  OperatorReplacement,
  OperatorRequest,
  OperatorResponse as Operator,
  OperatorRotation,
  PageQuery as PageFilter,
  Panicked,
  PanicRequest,
  PasskeyResponse as Passkey,
  PolicyReplacement,
  PolicyRequest,
  PolicyResponse as Policy,
  RegisteredAgent,
  RegistrationOptions,
  RegistrationOptionsRequest,
  RegistrationRequest,
  RetrieveResponse as RetrievedWire,
  RevokeRequest,
  RevokeResponse as Revoked,
  Rollback,
  RotatedAgent,
  RotatedKey,
  RotateKeyRequest,
  SearchQuery,
  SearchResults,
  SessionResponse as SessionWire,
  SignInMethods,
  SimulateRequest,
  Simulation,
  StoredCredential,
  TargetsRequest as PutTargetsRequest,
  Tree,
  TreeQuery,
  UnlockProgress,
  UseBody as UseRequest,
  UseLease as UseLeaseWire,
  UseLeaseBody as UseLeaseRequest,
  UseResponse,
  Verification,
  VerificationProgress,
} from '../api/types.ts';

export type StoreRequest = Omit<api.StoreBody, 'value'> & { readonly value: string | Secret };
export type Retrieved = Omit<api.RetrieveResponse, 'value'> & { readonly value: Secret };
/** The values of `env` contain the token. */
export type AgentUseLease = Omit<api.UseLease, 'token' | 'env'> & {
  readonly token: Secret;
  readonly env: Readonly<Record<string, Secret>>;
};
/** The caller's own session. `session_id` is null for a browser's session. */
export type CallerSession = Omit<api.CurrentSessionResponse, 'session_id'> & { readonly session_id: Secret | null };
export type AgentSession = Omit<api.SessionResponse, 'session_id'> & { readonly session_id: Secret };

export interface Page<T> {
  readonly data: readonly T[];
  readonly meta: api.Meta;
}
