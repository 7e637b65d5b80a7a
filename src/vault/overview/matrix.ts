/** The access matrix: the decisions of a page of agents and paths, with their reasons. */

import type { AgentName } from '../../core/names.ts';
import { authorize, type Context } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { ALL_PATHS, type Pattern, toRanges } from '../../core/pattern.ts';
import type { DraftOf } from '../../engine/resource.ts';
import {
  type CredentialCursor,
  countCredentials,
  FIRST_CREDENTIAL,
  listCredentials,
} from '../../store/credential-lists.ts';
import { type ListReader, readListing, Slice } from '../paging.ts';
import { explain, explainBriefly } from '../policies/decision-text.ts';
import { ACTIONS } from '../policies/policy.ts';
import type { PolicyIndex } from '../policies/policy-index.ts';
import { decide } from '../policies/policy-index.ts';
import type { Vault } from '../vault.ts';
import type { Matrix, MatrixDecision, MatrixQuery } from './overview.ts';

/** The length of the reasons in a response; further reasons are brief. WHY: turning 13 MB into JSON takes 30 ms. */
const MAX_REASONS_LENGTH = 1024 * 1024;

type MatrixRequest = DraftOf<typeof MatrixQuery.fields>;

export async function readMatrix(
  vault: Vault,
  context: Context,
  request: MatrixRequest,
  signal: AbortSignal,
): Promise<Matrix> {
  const decide = () => vault.ledger.read(authorize(context, 'policy.matrix'));
  await decide();
  const { memory } = vault.ledger;
  const all = memory.control.agents().filter(({ name }) => name.startsWith(request.agentPrefix));
  const page = all.slice(request.agentOffset, request.agentOffset + request.agentLimit);
  const agents = page.map(({ name }) => name);
  const reader = vault.scanTurns.readerOf(context, signal);
  const { paths, total } = await readPaths(vault, request, reader, decide);
  const decideAll = () => decideCells(() => memory.control.policies, agents, paths, signal);
  const { decisions, cells } = await reader.inTurn(decideAll);
  const totals = { agentsTotal: all.length, pathsTotal: total };
  return { ...totals, agents: agents.map((name) => ({ name })), paths, actions: ACTIONS, decisions, cells };
}

async function readPaths(
  { store }: Vault,
  { prefix, pathOffset, pathLimit }: MatrixRequest,
  reader: ListReader,
  decideAgain: () => Promise<unknown>,
) {
  const ranges = prefix === '' ? ALL_PATHS : toRanges([prefix, `${prefix}/*`] as readonly string[] as Pattern[]);
  const query = { ranges, type: null };
  const source = {
    decideAgain,
    start: FIRST_CREDENTIAL,
    list: (from: CredentialCursor, limit: number) => store.run(listCredentials(store.dialect, query, from, limit)),
    count: (from: CredentialCursor, atMost: number) => store.run(countCredentials(store.dialect, query, from, atMost)),
  };
  const listing = await readListing({ offset: pathOffset, limit: pathLimit }, source, reader);
  const paths: CredentialPath[] = [];
  for await (const rows of listing.rows) paths.push(...rows.map(({ path }) => path));
  return { paths, total: listing.meta?.total ?? paths.length };
}

/** Decides in slices, between which other requests are served. The policies are those of the time of each agent. */
export async function decideCells(
  readPolicies: () => PolicyIndex,
  agents: readonly AgentName[],
  paths: readonly CredentialPath[],
  signal?: AbortSignal,
): Promise<Pick<Matrix, 'decisions' | 'cells'>> {
  const decisions: MatrixDecision[] = [];
  const indexes = new Map<string, number>();
  let reasonsLength = 0;
  const toIndex = (allowed: boolean, policyName: string | null, reason: string): number => {
    // The reason of a permission names its policy.
    const known = indexes.get(reason);
    if (known !== undefined) return known;
    reasonsLength += reason.length;
    indexes.set(reason, decisions.length);
    return decisions.push({ allowed, policyName, reason }) - 1;
  };
  const cells: number[][][] = [];
  const slice = new Slice();
  for (const agent of agents) {
    const policies = readPolicies();
    const row: number[][] = [];
    for (const path of paths) {
      const cell: number[] = [];
      for (const action of ACTIONS) {
        const decision = decide(policies, agent, action, path);
        const question = { policies, agent, isRegistered: true, action, path };
        const reason =
          reasonsLength < MAX_REASONS_LENGTH ? explain(decision, question) : explainBriefly(decision, question);
        cell.push(toIndex(decision.allowed, decision.allowed ? decision.policyName : null, reason));
        // It yields after each action: where many policies apply, one takes a millisecond.
        if (slice.isOver) await slice.pause(signal);
      }
      row.push(cell);
    }
    cells.push(row);
  }
  return { decisions, cells };
}
