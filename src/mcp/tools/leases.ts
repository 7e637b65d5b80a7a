/** `list_leases` and `describe_lease`: the agent's own leases, without their values. */
import { Type } from 'typebox';
import type { Leasehold } from '../../client/leasehold.ts';
import type { Lease } from '../../client/types.ts';
import { NEXT_OFFSET, nextOffset, ONLY_READS, oneOf, PAGE, strict, type Tool } from '../tool.ts';

const lease = strict({
  lease_id: Type.String(),
  path: Type.String(),
  status: Type.String({ description: 'active, expired or revoked.' }),
  issued_at: Type.String(),
  expires_at: Type.String(),
  revoked_at: Type.Union([Type.String(), Type.Null()]),
});

/** The fields for the model, without the policy that granted the lease. */
const describe = ({ lease_id, path, status, issued_at, expires_at, revoked_at }: Lease) => ({
  lease_id,
  path,
  status,
  issued_at,
  expires_at,
  revoked_at,
});

const listInput = strict({
  status: Type.Optional(oneOf(['active', 'expired', 'revoked'], 'Only leases with this status.')),
  ...PAGE,
});
const listOutput = strict({
  leases: Type.Array(lease),
  total: Type.Integer(),
  next_offset: NEXT_OFFSET,
});

export function listLeases(client: Leasehold): Tool<typeof listInput, typeof listOutput> {
  return {
    name: 'list_leases',
    title: 'List leases',
    description: 'Lists this agent’s own leases: path, end and status, never a value.',
    input: listInput,
    output: listOutput,
    annotations: ONLY_READS,
    async call({ status, limit = 50, offset = 0 }, signal) {
      const filter = { limit, offset, ...(status === undefined ? {} : { status }) };
      const { data, meta } = await client.leases.list(filter, { signal });
      const { total } = meta;
      return { leases: data.map(describe), total, next_offset: nextOffset(offset, data.length, total) };
    },
  };
}

const describeInput = strict({
  lease_id: Type.String({
    pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
    description: 'As returned by write_credential_to_file and list_leases.',
  }),
});

export function describeLease(client: Leasehold): Tool<typeof describeInput, typeof lease> {
  return {
    name: 'describe_lease',
    title: 'Describe a lease',
    description: 'Returns one of this agent’s own leases: path, end and status, never a value.',
    input: describeInput,
    output: lease,
    annotations: ONLY_READS,
    call: async ({ lease_id }, signal) => describe(await client.leases.read(lease_id, { signal })),
  };
}
