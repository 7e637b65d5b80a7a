/** `write_credential_to_file` and `remove_file`: a program reads the value from a file; the model gets its path. */
import { Type } from 'typebox';
import { FILE_NAME } from '../file-directory.ts';
import type { LeasedFiles } from '../leased-files.ts';
import { LEASE_REQUEST, readPath, strict, type Tool } from '../tool.ts';

const name = Type.String({
  pattern: FILE_NAME,
  description: 'Name of the file, one segment and never a path: A-Z a-z 0-9 . _ - and a letter or digit in front.',
});
const writeInput = strict({ ...LEASE_REQUEST, name });
const writeOutput = strict({
  file: Type.String({ description: 'Path of the file.' }),
  path: Type.String(),
  lease_id: Type.String(),
  expires_at: Type.String({ description: 'When the lease ends and the file is removed.' }),
});

export function writeCredentialToFile(files: LeasedFiles): Tool<typeof writeInput, typeof writeOutput> {
  return {
    name: 'write_credential_to_file',
    title: 'Write a credential into a private file',
    description:
      'Writes the value of a credential into a new private file, for a program that reads it from there, and returns its path, never the value. For an HTTP API use http_request instead, which writes no value anywhere. Pass the path to the program; do not read the file. It is removed when the lease ends, with remove_file, and when this server stops.',
    input: writeInput,
    output: writeOutput,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    async call(input) {
      const path = readPath(input.path);
      const { file, leaseId, expiresAt } = await files.keep(input.name, path, input.ttl_seconds);
      return { file, path, lease_id: leaseId, expires_at: expiresAt };
    },
  };
}

const removeInput = strict({ name });
const removeOutput = strict({ path: Type.String(), lease_id: Type.String(), is_removed: Type.Boolean() });

export function removeFile(files: LeasedFiles): Tool<typeof removeInput, typeof removeOutput> {
  return {
    name: 'remove_file',
    title: 'Remove a credential’s file',
    description:
      'Removes a file that write_credential_to_file wrote, and ends its lease. No other file can be removed.',
    input: removeInput,
    output: removeOutput,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    async call(input) {
      const { path, leaseId } = await files.remove(input.name);
      return { path, lease_id: leaseId, is_removed: true };
    },
  };
}
