/** The webhook for approvals in the service's flags. */
import { UsageError } from '../platform/errors.ts';
import { parseHttpUrl } from './receiver-address.ts';

export interface ApprovalWebhookOption {
  readonly url: URL;
  /** Contains the secret with which messages are signed. */
  readonly secretFile: string;
}

const FLAG = { name: '--approval-webhook', forms: 'https://HOST/PATH', tokenFlag: null };

/** Null without a webhook. @throws UsageError */
export function parseApprovalWebhook(
  text: string | undefined,
  secretFile: string | null,
): ApprovalWebhookOption | null {
  if (text === undefined && secretFile === null) return null;
  if (text === undefined || secretFile === null)
    throw new UsageError('--approval-webhook and --approval-webhook-secret-file go together.');
  return { url: parseHttpUrl(FLAG, text), secretFile };
}
