/**
 * Authorizes a verification and the query of its progress. SOURCE: docs/api.md, "The audit log"; docs/decisions.md,
 * "The audit log".
 */
import type { Context } from '../../core/operation.ts';
import { verifyAudit } from '../../core/operations/admin-read.ts';
import type { Vault } from '../vault.ts';
import type { VerificationResult, VerificationStatus } from './verifier.ts';

const NEVER_ABORTED = new AbortController().signal;

/**
 * Authorizes the caller. Returns the function that verifies, which ends soon after its signal.
 * @throws ACCESS_DENIED, UNAUTHENTICATED, SESSION_EXPIRED, UNAVAILABLE
 */
export async function authorizeVerification(
  vault: Vault,
  context: Context,
): Promise<(signal: AbortSignal) => Promise<VerificationResult>> {
  await vault.ledger.submit(verifyAudit(context));
  return (signal) => vault.verifier.verify(signal);
}

/** Verifies to the end. @throws as `authorizeVerification` */
export async function verifyLog(vault: Vault, context: Context): Promise<VerificationResult> {
  const verify = await authorizeVerification(vault, context);
  return verify(NEVER_ABORTED);
}

/** The status of the verification that runs for any caller; null if none runs. @throws as `authorizeVerification` */
export async function readProgress(vault: Vault, context: Context): Promise<VerificationStatus | null> {
  await vault.ledger.submit(verifyAudit(context));
  return vault.verifier.status;
}
