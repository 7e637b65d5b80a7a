/**
 * Schemas of browser sign-in. Future browsers may add fields to the objects that WebAuthn makes, so unknown fields of
 * these are allowed. SOURCE: WebAuthn, level 3, section 5.1; docs/api.md, "Signing in to the console".
 */
import { type TProperties, Type } from 'typebox';
import * as fields from './fields.ts';

const { StrictObject, Nullable, NullableTimestamp, Text, Timestamp, Base64url } = fields;

/** An object that the browser makes, in which unknown fields are allowed. */
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
  Type.String({
    ...fields.SignInCode,
    description: 'The enrolment code. Required without a session, and takes precedence over one.',
  }),
);
export const RegistrationOptionsRequest = StrictObject({ code });
export const RegistrationRequest = StrictObject({
  challenge_id: fields.Id,
  response: RegistrationResponse,
  label: fields.PasskeyLabel,
  code,
});
export const AssertionRequest = StrictObject({ challenge_id: fields.Id, response: AssertionResponse });
export const OidcRequest = StrictObject({ code: fields.SignInCode, state: fields.SignInCode });
export const HandoffRequest = StrictObject({ code: fields.SignInCode });

export const RelyingParty = StrictObject({ id: Text, name: Text });
export const UserEntity = StrictObject({ id: Base64url, name: Text, displayName: Text });
export const CredentialParameters = StrictObject({ type: Type.Literal('public-key'), alg: Type.Integer() });
export const CredentialDescriptor = StrictObject({
  type: Type.Literal('public-key'),
  id: fields.PasskeyId,
  transports: Type.Array(Text),
});
export const AuthenticatorSelection = StrictObject({
  residentKey: Type.Literal('required'),
  requireResidentKey: Type.Boolean(),
  userVerification: Type.Literal('required'),
});
export const CreationOptions = StrictObject(
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
export const RegistrationOptions = StrictObject({ challenge_id: fields.Id, options: CreationOptions });
export const RequestOptions = StrictObject(
  { challenge: Base64url, rpId: Text, timeout: Type.Integer(), userVerification: Type.Literal('required') },
  { description: 'For `PublicKeyCredential.parseRequestOptionsFromJSON`.' },
);
export const AssertionOptions = StrictObject({ challenge_id: fields.Id, options: RequestOptions });
export const OidcOptions = StrictObject({
  url: Type.String({ description: "URL of the provider's sign-in page." }),
  state: Type.String({ description: 'The state that the provider returns to `/console/callback`.' }),
});
export const SignInMethods = StrictObject({
  passkey: Type.Boolean({
    description: 'Whether passkeys work at this URL of the server. Only there can `oidc` be set.',
  }),
  oidc: Nullable<{ label: string }>(StrictObject({ label: Text })),
  setup: Type.Boolean({ description: 'Whether no operator exists yet.' }),
});
export const BrowserSession = StrictObject({
  agent_name: fields.ActorName,
  expires_at: NullableTimestamp,
  expires_in: Nullable<number>(fields.SecondsLeft),
  session_part: Type.String({
    description: 'One half of the token. The cookie of this response contains the other half.',
  }),
});
export const OneTimeCode = StrictObject({ code: Type.String(), expires_at: Timestamp });
