/** Converts the vault's types to those of the interface, with keys in snake case and times as ISO 8601 timestamps. */
import type * as api from '../api/types.ts';
import { toTimestamp } from '../engine/timestamp.ts';
import type { StateCheck } from '../vault/audit/verification/state-scan.ts';
import type { VerificationResult, VerificationStatus } from '../vault/audit/verification/verifier.ts';
import { sdkEnvironment } from '../vault/catalogue/sdk-environment.ts';
import type { TreeLevel } from '../vault/overview/credential-tree.ts';
import type { AccessMatrix } from '../vault/overview/matrix.ts';
import { ACTIONS } from '../vault/policies/policy.ts';
import type { NewUseLease } from '../vault/use/use-leases.ts';

export const toUseLeaseResponse = ({ lease, token, service }: NewUseLease, baseUrl: string): api.UseLease => ({
  lease_id: lease.id,
  token: token.reveal(),
  base_url: baseUrl,
  expires_at: toTimestamp(lease.expiresAt),
  env: service === null ? {} : sdkEnvironment(service, baseUrl, token.reveal()),
});

export function toVerificationResponse(verification: VerificationResult, check: StateCheck | null): api.Verification {
  const state = check === null ? {} : { state: toStateResponse(check) };
  if (verification.isValid) {
    const { entries, firstEntry, lastEntry } = verification;
    return { valid: true, entries, first_entry: firstEntry, last_entry: lastEntry, ...state };
  }
  const { breakAtEntry, breakAtTimestamp, reason } = verification;
  return {
    valid: false,
    break_at_entry: breakAtEntry,
    break_at_timestamp: breakAtTimestamp,
    message: `The audit chain is broken at entry ${breakAtEntry}: ${reason}.`,
    ...state,
  };
}

function toStateResponse({ checked, problemCount, problems }: StateCheck): NonNullable<api.Verification['state']> {
  // An altered row may hold any text.
  const shown = problems.map(({ subject, problem }) => ({ subject: subject.toWellFormed().slice(0, 600), problem }));
  return { checked, problem_count: problemCount, problems: shown };
}

/** `progress` is null if no verification runs. */
export const toProgressResponse = (
  progress: VerificationStatus | null,
  rowsChecked: number,
): api.VerificationProgress => ({
  running: progress !== null || rowsChecked > 0,
  entries_checked: progress?.entriesChecked ?? null,
  entries_total: progress?.entriesTotal ?? null,
  ...(rowsChecked === 0 ? {} : { rows_checked: rowsChecked }),
  started_at: progress === null ? null : toTimestamp(progress.startedAt),
});

export const toMatrixResponse = (matrix: AccessMatrix): api.Matrix => ({
  agents: matrix.agents.map((name) => ({ name })),
  agents_total: matrix.agentsTotal,
  paths: [...matrix.paths],
  paths_total: matrix.pathsTotal,
  actions: [...ACTIONS],
  decisions: matrix.decisions.map(({ allowed, policyName, reason }) => ({ allowed, policy_name: policyName, reason })),
  cells: matrix.cells as number[][][],
});

export const toTreeResponse = (prefix: string, { entries, next }: TreeLevel): api.Tree => ({
  prefix,
  entries: entries.map(({ name, path, directory, credential }) => ({
    name,
    kind: directory === null ? ('credential' as const) : ('directory' as const),
    path,
    ...(directory ?? {}),
    ...(credential === null ? {} : { type: credential.type, updated_at: toTimestamp(credential.updatedAt) }),
  })),
  next,
});
