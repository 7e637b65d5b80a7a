/** `retrieve_credential`: returns the value to the model. Offered only if the operator turned it on. */
import { Type } from 'typebox';
import type { HeldLeases } from '../leases.ts';
import { LEASE_REQUEST, readPath, strict, type Tool } from '../tool.ts';

const input = strict(LEASE_REQUEST);
const output = strict({
  path: Type.String(),
  value: Type.String(),
  lease_id: Type.String(),
  expires_at: Type.String(),
});

export function retrieveCredential(leases: HeldLeases): Tool<typeof input, typeof output> {
  return {
    name: 'retrieve_credential',
    title: 'Retrieve a value into the conversation',
    description:
      'Returns the bare value. THE VALUE BECOMES PART OF THIS CONVERSATION: of its log, of the model’s context, and of every copy of them. For an HTTP API use http_request, which needs no value; for a program prefer run_with_credential or write_credential_to_file.',
    input,
    output,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    async call({ path, ttl_seconds }) {
      const { value, lease_id, expires_at, ...others } = await leases.retrieve(readPath(path), ttl_seconds);
      return { path: others.path, value: value.reveal(), lease_id, expires_at };
    },
  };
}
