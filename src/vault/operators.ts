/** Adds operators and rotates their keys, which the service never makes. SOURCE: docs/api.md, "Operators". */
import type { AgentId, OperatorName } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { addOperator as add, rotateOperatorKey as rotate } from '../core/operations/operators.ts';
import type { Operator, Role } from '../core/operator.ts';
import { parsePublicKey } from '../crypto/ed25519.ts';
import { newId } from '../crypto/random.ts';
import type { Vault } from './vault.ts';

export interface OperatorDraft {
  readonly name: OperatorName;
  readonly description: string;
  readonly roles: readonly Role[];
  /** Base64. */
  readonly publicKey: string;
}

/** @throws INVALID_REQUEST for a key that is not usable */
export async function addOperator({ ledger }: Vault, context: Context, draft: OperatorDraft): Promise<Operator> {
  const publicKey = parsePublicKey(draft.publicKey);
  return ledger.submit(add(context, { ...draft, id: newId() as AgentId, publicKey }));
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
