/** Verifying the log: who may, and how far it is. The work is `verifier.ts`'s. SOURCE: interface 2.9; decisions, "Audit". */
import type { Context } from '../../core/operation.ts';
import { verifyAudit } from '../../core/operations/audit.ts';
import type { Vault } from '../vault.ts';
import type { Verification, VerificationProgress } from './verifier.ts';

const NEVER = new AbortController().signal;

/**
 * Decides whether the caller may, and leaves the work, which ends soon after its signal, to be begun by whoever wants the
 * answer. @throws ACCESS_DENIED, UNAUTHENTICATED, SESSION_EXPIRED, UNAVAILABLE
 */
export async function authorizeVerification(
  vault: Vault,
  context: Context,
): Promise<(signal: AbortSignal) => Promise<Verification>> {
  await vault.ledger.submit(verifyAudit(context));
  return (signal) => vault.verifier.verify(signal);
}

/** Verifies for a caller who stays. @throws as `admitVerification` */
export async function verifyLog(vault: Vault, context: Context): Promise<Verification> {
  const verify = await authorizeVerification(vault, context);
  return verify(NEVER);
}

/** How far the verification is that runs now, whoever asked for it; null where none does. @throws as `admitVerification` */
export async function readProgress(vault: Vault, context: Context): Promise<VerificationProgress | null> {
  await vault.ledger.submit(verifyAudit(context));
  return vault.verifier.progress;
}
