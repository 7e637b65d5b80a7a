/** Endpoints that list, read and remove operators. SOURCE: docs/operators.md. */
import type { BatchState } from '../../core/batch-state.ts';
import { removeRow } from '../../core/change.ts';
import { adminEndpoint, keyOf, nothing } from '../../core/endpoint.ts';
import type { OperatorName } from '../../core/names.ts';
import { denied, rejected, succeeded } from '../../core/operation.ts';
import { allLeasesOf } from '../leases/lease.ts';
import { Operator } from './operator.ts';
import { isLastAdmin, keptAdmin } from './operator-operations.ts';

const find = ({ control }: BatchState, name: OperatorName): Operator | null => control.operatorByName(name);

/** Replies with the operators, sorted by name. */
export const listOperators = adminEndpoint({
  id: 'listOperators',
  method: 'GET',
  path: '/api/v1/operators',
  summary: 'List operators.',
  permission: 'operator.list',
  input: nothing(Operator),
  reply: 'list',
  decide: ({ state }) => succeeded<readonly Operator[]>(state.control.operators(), null),
});

export const readOperator = adminEndpoint({
  id: 'readOperator',
  method: 'GET',
  path: '/api/v1/operators/{name}',
  summary: 'Read an operator.',
  permission: 'operator.read',
  input: keyOf(Operator),
  reply: 'row',
  find,
  decide({ state }, name) {
    const operator = find(state, name);
    return operator === null ? rejected({ code: 'operator_not_found' }, null) : succeeded(operator, null);
  },
});

/** The sessions stop working because they name the operator's id; its leases are revoked. */
export const removeOperator = adminEndpoint({
  id: 'removeOperator',
  method: 'DELETE',
  path: '/api/v1/operators/{name}',
  summary: 'Remove an operator: its sessions and leases end immediately.',
  permission: 'operator.remove',
  input: keyOf(Operator),
  reply: null,
  find,
  decide(input, name) {
    const { state, moment, entry } = input;
    const known = find(state, name);
    if (known === null) return denied(input, { code: 'operator_not_found' });
    if (isLastAdmin(input, known)) return keptAdmin(input, 'name');
    return succeeded(null, entry('allowed'), [
      removeRow('operator', { id: known.id, name }),
      { kind: 'revokeMatching', revocation: allLeasesOf(known.id, moment) },
    ]);
  },
});
