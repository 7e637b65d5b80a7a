/**
 * The closed table of denials: the texts of each code, made from its parameters. The messages and reasons of denials
 * exist only here. SOURCE: docs/denials.md.
 */
import { describeTimeout } from '../vault/approvals/approval.ts';
import { TOO_LARGE_TO_USE } from '../vault/credentials/credential.ts';
import { KeySlot } from '../vault/keys/keyset.ts';
import type { Role } from '../vault/operators/operator.ts';
import { ACTIONS } from '../vault/policies/policy.ts';
import type { TokenPlace } from '../vault/use/token-form.ts';
import { forbidden, invalid, missing, rejection, toSentence } from './denial-kinds.ts';
import {
  type AboutApproval,
  approvalOutcome,
  byPolicies,
  type Current,
  describeUseLimit,
  failedLogin,
  givenReason,
  LOGIN_FAILED,
  type NetworkNotAllowed,
  type NoTarget,
  OPERATOR_REQUIRED,
  operatorFieldRule,
  PART,
  rule,
  SIGN_IN_FAILED,
  TAKEN,
  TOKEN_UNKNOWN,
  TOO_MANY_PASSKEYS,
  toldNetwork,
  toldNoTarget,
  VOID_CAUSES,
  type VoidCause,
} from './denial-texts.ts';
import { IDEMPOTENCY_KEY_FIELD } from './idempotency.ts';
import type { CredentialPath } from './path.ts';

export const DENIALS = {
  // The caller.
  token_unknown: rejection('UNAUTHENTICATED', null, TOKEN_UNKNOWN),
  admin_token_unknown: rejection(
    'UNAUTHENTICATED',
    null,
    "the administrator's token is not valid. Each start of the server makes a new one, unless it has --admin-token-file: use the token that the server printed last, or the one in that file",
  ),
  use_token_unknown: rejection('UNAUTHENTICATED', null, 'the token is not valid'),
  session_expired: rejection('SESSION_EXPIRED', null, 'the session has ended. Log in again'),
  use_lease_ended: rejection('LEASE_ENDED', null, 'the use lease has ended. Ask for another one'),
  role_required: rejection(
    'ACCESS_DENIED',
    ({ role }: { readonly role: Role }) => `only an operator with the role ${role} may do this`,
  ),
  admin_only: { ...rejection('ACCESS_DENIED', 'only the administrator may do this'), class: 'admin_only' },
  use_token_only: rejection('ACCESS_DENIED', 'the token of a use lease is good for uses only'),

  // The request.
  precondition_failed: rejection<Current>('PRECONDITION_FAILED', 'a precondition of the request does not hold'),
  idempotency_key_reused: invalid(
    null,
    rule(IDEMPOTENCY_KEY_FIELD, 'was used for a different request within 24 hours; use a new key for a new request'),
  ),
  time_in_past: invalid(null, ({ field }: { readonly field: string }) => rule(field, 'must be in the future')),

  // Policies and roles.
  no_policy: byPolicies('no_policy', 'no policy names this agent'),
  no_action: byPolicies('no_action', 'no policy grants this agent the action'),
  no_path: byPolicies('no_path', 'no policy grants this agent the action on this path'),
  unknown_action: forbidden(`the action does not exist; the actions are ${ACTIONS.join(', ')}`),
  use_needs_admin: forbidden(
    'only an operator with the role admin may use credentials',
    'only an operator with the role admin may use credentials (use)',
  ),
  admin_retrieve_off: forbidden(
    'the administrator may not read values here',
    'the administrator may not read values here (--admin-retrieve=deny)',
  ),
  simulates_other: rejection('ACCESS_DENIED', 'an agent may simulate only for itself'),
  policy_for_operators: forbidden('only an operator with the role admin may write policies for operators'),
  beyond_reach: forbidden('an editor may give only what policies grant it: an action on a path is not among that'),
  drops_approval: forbidden(
    'what an editor needs an approval for, it may give only with the same demand for an approval',
  ),
  lifts_approval: forbidden(
    'only an operator with the role admin may change or delete a policy that demands an approval',
  ),
  policy_not_found: missing('the policy does not exist'),

  // Credentials.
  credential_not_found: rejection('NOT_FOUND', 'the credential does not exist'),
  version_not_found: rejection('NOT_FOUND', 'the version does not exist'),
  credential_altered: rejection(
    'INTEGRITY_FAILURE',
    "the credential's row does not authenticate",
    'the credential does not authenticate: its row was edited outside Leasehold. Delete it and store it again',
  ),
  value_missing: rejection(
    'INTEGRITY_FAILURE',
    'the newest value is missing from the store',
    'the stored value is missing: it was removed',
  ),
  value_altered: rejection(
    'INTEGRITY_FAILURE',
    'the stored value does not authenticate',
    'the stored value does not authenticate: it was altered, or encrypted under another key',
  ),
  path_taken: rejection('ALREADY_EXISTS', 'the path exists already', 'a credential exists at this path already'),
  value_too_large: invalid('the value is too large to be used', TOO_LARGE_TO_USE),

  // Brokered requests and their targets.
  no_targets: forbidden(
    'the credential has no targets',
    'the credential has no targets, so it cannot be used. Set its targets first',
  ),
  targets_not_found: rejection(
    'NOT_FOUND',
    'the credential has no targets',
    'the credential has no targets, or does not exist',
  ),
  no_target: forbidden(({ lacks }: NoTarget) => toldNoTarget({ lacks, nearest: null }), toldNoTarget),
  no_target_with_number: forbidden('the credential has no target with this number'),
  wildcard_target: forbidden('a target with a wildcard host needs the whole URL, in a request to /api/v1/use'),
  returns_secret: forbidden(
    ({ service }: { readonly service: string }) =>
      `the endpoint may return another secret of ${service}, which would outlive the lease`,
  ),
  value_too_short: forbidden('the value is too short to be redacted from responses'),
  other_credential: forbidden('the use lease is for another credential'),
  agent_required: forbidden('only an agent can have a use lease with a token'),
  operator_field: forbidden(
    operatorFieldRule,
    ({ field, path }: { readonly field: string; readonly path: CredentialPath }) =>
      `${operatorFieldRule({ field })}. Ask one to run leasehold target put ${path}, or use public https targets`,
  ),
  network_not_allowed: forbidden(
    ({ field }: NetworkNotAllowed) => `${field} is not in a network that this server allows`,
    toldNetwork,
  ),
  use_limit: {
    ...rejection(
      'RATE_LIMITED',
      describeUseLimit,
      ({ policyName, kind, amount }) => `over the limit of policy ${policyName}: ${amount} ${kind}. Try again later`,
    ),
    class: 'limit',
  },
  token_at_route: {
    ...rejection(
      'UNAUTHENTICATED',
      ({ route }: { readonly route: string | null }) =>
        `the token was sent to ${route ?? 'an address'}, which is not a base URL`,
      TOKEN_UNKNOWN,
    ),
    class: 'misuse',
  },
  token_at_base_url: {
    ...forbidden(
      ({ credential }: { readonly credential: CredentialPath | null }) =>
        `the token was sent to the base URL of ${credential ?? 'another credential'}`,
      'the use lease is for another credential',
    ),
    class: 'misuse',
  },
  token_in_request: {
    ...forbidden(
      ({ place, credential }: { readonly place: TokenPlace; readonly credential: CredentialPath | null }) =>
        `the token was in ${PART[place]} of a request with ${credential ?? 'another credential'}`,
      ({ place }) => `${PART[place]} of the request has the token of a use lease. Nothing was sent`,
    ),
    class: 'misuse',
  },

  // Leases.
  lease_not_found: missing('the lease does not exist'),
  lease_ended: rejection(
    'LEASE_ENDED',
    ({ status }: { readonly status: string }) => `the lease is ${status}`,
    'the lease has ended; retrieve the credential again',
  ),
  renews_other: rejection('ACCESS_DENIED', 'an operator without the role admin may renew only its leases'),
  revokes_other: rejection('ACCESS_DENIED', 'an agent may revoke only its own leases'),

  // Approvals.
  approval_not_found: missing('the approval does not exist'),
  too_few_approvers: rejection(
    'NO_APPROVER',
    'fewer operators can approve this than the policy demands',
    ({ quorum }: { readonly quorum: number }) =>
      `the request needs the approval of ${quorum}, and fewer operators can give it. Ask an administrator to add operators with the role approver`,
  ),
  approval_denied: approvalOutcome(
    'APPROVAL_DENIED',
    ({ endedBy }) => `denied by ${endedBy}`,
    (approval) =>
      `the approval was denied by ${approval.endedBy}${givenReason(approval)}. Do not send the request again`,
  ),
  approval_timed_out: approvalOutcome('APPROVAL_TIMED_OUT', describeTimeout, ({ approvers, terms }) =>
    approvers.length === 0
      ? 'the approval timed out: no operator answered in the time that the policy gives. This is not a refusal; ask again later'
      : `the approval timed out: ${approvers.length} of the ${terms.quorum} operators that it needs approved in the time that the policy gives. This is not a refusal; ask again later`,
  ),
  approval_withdrawn: approvalOutcome(
    'APPROVAL_WITHDRAWN',
    ({ endedBy }) => `withdrawn by ${endedBy}`,
    (approval) =>
      `the request for approval was withdrawn by ${approval.endedBy}${givenReason(approval)}. This is not a refusal; a later request asks again`,
  ),
  wrong_nonce: invalid('the nonce is another one', rule('nonce', 'must be that of the approval')),
  own_request: forbidden('an operator may not answer its own request, or that of an agent that it registered'),
  token_not_counted: forbidden('where several operators have to approve, the administrator’s token is not one of them'),
  approval_ended: rejection(
    'APPROVAL_ENDED',
    ({ status, attempt }: AboutApproval & { readonly status: string; readonly attempt: 'answer' | 'withdrawal' }) =>
      attempt === 'answer' ? `it is ${status} already` : `it is ${status}`,
    ({ status }) => `the approval is ${status.replace('_', ' ')} already`,
  ),
  approval_void: rejection(
    'APPROVAL_ENDED',
    ({ cause }: AboutApproval & { readonly cause: VoidCause }) => `it was withdrawn: ${VOID_CAUSES[cause]}`,
    ({ cause }) => `the approval was withdrawn: ${VOID_CAUSES[cause]}. The agent has to ask again`,
  ),
  approved_already: rejection(
    'ALREADY_EXISTS',
    'the operator has approved it already',
    'you have approved this already; another operator has to approve it too',
  ),
  approver_required: rejection(
    'ACCESS_DENIED',
    'only an operator with the role approver may do this with the request of another caller',
  ),

  // Agents, operators and key slots.
  name_taken: rejection(
    'ALREADY_EXISTS',
    'the name is taken',
    ({ of }: { readonly of: keyof typeof TAKEN }) => TAKEN[of],
  ),
  too_many_slots: invalid(
    'a vault cannot have more key slots',
    rule('name', `a vault has at most ${KeySlot.maxRows} key slots; remove one first`),
  ),
  slot_group_taken: rejection('ALREADY_EXISTS', 'the group of shares is taken', 'a key slot has this group of shares'),
  agent_not_found: missing('the agent is not registered'),
  operator_not_found: missing('the operator does not exist'),
  identity_taken: rejection('ALREADY_EXISTS', 'the identity is taken', 'another operator has this identity'),
  last_admin: invalid('it is the last operator with the role admin', ({ field }: { readonly field: string }) =>
    rule(field, 'this is the last operator with the role admin that can sign in; let another one sign in first'),
  ),
  operator_required: rejection(
    'ACCESS_DENIED',
    'the caller is not an operator',
    ({ to }: { readonly to: keyof typeof OPERATOR_REQUIRED }) => OPERATOR_REQUIRED[to],
  ),
  key_slot_not_found: missing('no key slot has this name'),
  last_key_slot: invalid(
    'it is the last key slot',
    rule('name', 'the last key slot cannot be removed; add another one first'),
  ),
  key_slot_altered: invalid(
    'a key slot was altered outside Leasehold',
    'A key slot was altered outside Leasehold and would not open the new root key. Run leasehold doctor --state, and restore its row, or remove it by its id.',
  ),
  /** `problem` is the report of the slot's service or key. */
  key_slot_unusable: rejection('UNAVAILABLE', ({ problem }: { readonly problem: string }) => problem),

  // Sessions and logins.
  session_not_found: missing('this token is not that of a session'),
  browser_session: rejection(
    'ACCESS_DENIED',
    'the session is that of a browser',
    "a browser's session cannot be handed over",
  ),
  renewal_needs_operator: rejection('ACCESS_DENIED', 'only the session of an operator can be renewed'),
  login_failed: failedLogin(null, LOGIN_FAILED),
  challenge_expired: failedLogin('the challenge has expired', LOGIN_FAILED),
  challenge_used: failedLogin('the challenge was used already', LOGIN_FAILED),
  signature_invalid: failedLogin('the signature does not fit the challenge and the key', LOGIN_FAILED),
  sign_in_expired: failedLogin('the sign-in has expired', SIGN_IN_FAILED),
  sign_in_used: failedLogin('the sign-in was used already', SIGN_IN_FAILED),
  passkey_removed: failedLogin('the operator no longer has the passkey', SIGN_IN_FAILED),
  passkey_of_other_user: failedLogin('the passkey is for another user', SIGN_IN_FAILED),
  passkey_signature_invalid: failedLogin('the signature does not fit the challenge and the passkey', SIGN_IN_FAILED),
  passkey_not_for_page: failedLogin(
    'the signature is not for this challenge and page, or the user was not verified',
    SIGN_IN_FAILED,
  ),
  passkey_copied: failedLogin(
    ({ label }: { readonly label: string }) =>
      `the counter of the passkey ${label} went backwards: it may have been copied`,
    SIGN_IN_FAILED,
  ),
  identity_unknown: failedLogin('it is not known', SIGN_IN_FAILED),
  email_unverified: failedLogin('the identity provider has not verified the e-mail address', SIGN_IN_FAILED),
  parent_session_ended: failedLogin('the session that issued the code has ended', SIGN_IN_FAILED),
  /** Recorded only for the registration of a passkey, with the same sentence as the error. */
  sign_in_failed: rejection('AUTH_FAILED', toSentence(SIGN_IN_FAILED), SIGN_IN_FAILED),
  too_many_passkeys: invalid(TOO_MANY_PASSKEYS, TOO_MANY_PASSKEYS),
  passkey_taken: rejection(
    'ALREADY_EXISTS',
    'This passkey is registered already.',
    'this passkey is registered already',
  ),
  passkey_not_found: missing('the operator or the passkey does not exist'),
  passkey_of_other: rejection('ACCESS_DENIED', "only the operator itself or an admin may remove an operator's passkey"),
} as const;
