/** The schemas of the options for creating and using a passkey. SOURCE: WebAuthn, level 3, section 5.1. */
import { Type } from 'typebox';
import * as fields from './fields.ts';

const { StrictObject, Text, Base64url } = fields;

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
