/**
 * The schemas of sign-ins in a browser. What the browser's WebAuthn functions make may have more fields than these, in
 * browsers to come. SOURCE: WebAuthn, level 3, section 5.1; docs/api.md, "Signing in to the console".
 */
import type { TProperties } from 'typebox';
import * as fields from './fields.ts';
import { Type } from './schema.ts';

const { Base64url, object } = fields;

/** An object of the browser, with fields that are not read. */
const ofBrowser = <T extends TProperties>(properties: T) => Type.Object(properties, { additionalProperties: true });

export const ExtensionResults = ofBrowser({});
const credential = {
  id: fields.PasskeyId,
  rawId: Base64url,
  type: Type.Literal('public-key'),
  clientExtensionResults: ExtensionResults,
};
export const AttestationData = ofBrowser({
  clientDataJSON: Base64url,
  attestationObject: Base64url,
  transports: Type.Optional(
    Type.Array(Type.String({ maxLength: 64, title: 'Transport' }), { minItems: 0, maxItems: 16 }),
  ),
});
export const RegistrationResponse = ofBrowser({ ...credential, response: AttestationData });
export const AssertionData = ofBrowser({
  clientDataJSON: Base64url,
  authenticatorData: Base64url,
  signature: Base64url,
  userHandle: Type.Optional(Base64url),
});
export const AssertionResponse = ofBrowser({ ...credential, response: AssertionData });

const code = Type.Optional(
  Type.String({ ...fields.SignInCode, description: 'Of an enrolment, in place of a session.' }),
);
export const RegistrationOptionsRequest = object({ code });
export const RegistrationRequest = object({
  challenge_id: fields.Id,
  response: RegistrationResponse,
  label: fields.PasskeyLabel,
  code,
});
export const AssertionRequest = object({ challenge_id: fields.Id, response: AssertionResponse });
export const OidcRequest = object({ code: fields.SignInCode, state: fields.SignInCode });
export const HandoffRequest = object({ code: fields.SignInCode });

export const RelyingParty = object({ id: fields.Text, name: fields.Text });
export const UserEntity = object({ id: Base64url, name: fields.Text, displayName: fields.Text });
export const CredentialParameters = object({ type: Type.Literal('public-key'), alg: Type.Integer() });
export const CredentialDescriptor = object({
  type: Type.Literal('public-key'),
  id: fields.PasskeyId,
  transports: Type.Array(fields.Text),
});
export const AuthenticatorSelection = object({
  residentKey: Type.Literal('required'),
  requireResidentKey: Type.Boolean(),
  userVerification: Type.Literal('required'),
});
export const CreationOptions = object(
  {
    rp: RelyingParty,
    user: UserEntity,
    challenge: Base64url,
    pubKeyCredParams: Type.Array(CredentialParameters),
    timeout: Type.Integer(),
    excludeCredentials: Type.Array(CredentialDescriptor),
    authenticatorSelection: AuthenticatorSelection,
    attestation: Type.Literal('none'),
  },
  { description: 'For `PublicKeyCredential.parseCreationOptionsFromJSON`.' },
);
export const RegistrationOptions = object({ challenge_id: fields.Id, options: CreationOptions });
export const RequestOptions = object(
  { challenge: Base64url, rpId: fields.Text, timeout: Type.Integer(), userVerification: Type.Literal('required') },
  { description: 'For `PublicKeyCredential.parseRequestOptionsFromJSON`.' },
);
export const AssertionOptions = object({ challenge_id: fields.Id, options: RequestOptions });
export const OidcOptions = object({
  url: Type.String({ description: 'Where the browser goes to sign in.' }),
  state: Type.String({ description: 'As the provider returns it to `/console/callback`.' }),
});
export const SignInMethods = object({
  passkey: Type.Boolean({
    description: 'Whether passkeys work at this address of the service. Only there can `oidc` be set.',
  }),
  oidc: fields.nullable<{ label: string }>(object({ label: fields.Text })),
  setup: Type.Boolean({ description: 'Whether no operator exists yet.' }),
});
export const BrowserSession = object({
  agent_name: fields.ActorName,
  expires_at: fields.NullableTimestamp,
  expires_in: fields.nullable<number>(fields.SecondsLeft),
  session_part: Type.String({ description: 'Half of the token; the cookie that this response sets has the other.' }),
});
export const OneTimeCode = object({ code: Type.String(), expires_at: fields.Timestamp });
