/** Adds operators and rotates their keys, which the server never makes. SOURCE: docs/api.md, "Operators". */

import type { AgentId, OperatorName } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import { newId } from '../../crypto/primitives.ts';
import { parsePublicKey } from '../../crypto/signatures.ts';
import { invalidRequest } from '../../engine/errors.ts';
import type { Vault } from '../vault.ts';
import type { GivenIdentity, NewOperator, Operator, ProviderIdentity } from './operator.ts';
import { addOperator as add, rotateOperatorKey as rotate } from './operator-operations.ts';

/** The identity at the provider of the configuration. @throws INVALID_REQUEST */
export function toIdentity({ oidc }: Vault, { subject, email }: GivenIdentity): ProviderIdentity {
  if (oidc === null) throw invalidRequest('identity', 'needs a provider: start the server with --oidc-issuer');
  if ((subject === null) === (email === null)) throw invalidRequest('identity', 'must have either subject or email');
  return { issuer: oidc.issuer, subject, email };
}

/** @throws INVALID_REQUEST for a key that is not usable */
export async function addOperator(vault: Vault, context: Context, draft: NewOperator): Promise<Operator> {
  const publicKey = draft.publicKey === null ? null : parsePublicKey(draft.publicKey);
  const identity = draft.identity === null ? null : toIdentity(vault, draft.identity);
  return vault.ledger.submit(add(context, { ...draft, id: newId() as AgentId, publicKey, identity }));
}

/** @throws INVALID_REQUEST for a key that is not usable */
export async function rotateOperatorKey(
  { ledger }: Vault,
  context: Context,
  name: OperatorName,
  publicKey: string,
): Promise<Operator> {
  return ledger.submit(rotate(context, name, parsePublicKey(publicKey)));
}
