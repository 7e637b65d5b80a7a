/**
 * Credentials for AWS, from the places that its SDKs read, in their order. SOURCE: docs.aws.amazon.com, "AWS SDKs and
 * Tools standardized credential providers".
 */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { AwsCredentials } from '../../crypto/aws-signature.ts';
import { type AwsEnvironment, fromContainer, fromInstance, fromWebIdentity, toCredentials } from './aws-roles.ts';
import { SlotKindError } from './slot-kind.ts';

/** @throws SlotKindError if none is found, or what the environment names cannot be read */
export async function readAwsCredentials(environment: AwsEnvironment, region: string): Promise<AwsCredentials> {
  const found =
    fromEnvironment(environment) ??
    (await fromWebIdentity(environment, region)) ??
    fromFile(environment) ??
    (await fromContainer(environment)) ??
    (await fromInstance(environment));
  if (found !== null) return found;
  throw new SlotKindError(
    'no AWS credentials: set AWS_ACCESS_KEY_ID, a profile, or a role of the pod, container or instance',
  );
}

function fromEnvironment(environment: AwsEnvironment): AwsCredentials | null {
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token } = environment;
  return toCredentials(id, secret, token);
}

function fromFile({ AWS_SHARED_CREDENTIALS_FILE: file, AWS_PROFILE: profile }: AwsEnvironment): AwsCredentials | null {
  let text: string;
  try {
    text = readFileSync(file ?? join(homedir(), '.aws', 'credentials'), 'utf8');
  } catch {
    return null;
  }
  const values = new Map<string, string>();
  let section = '';
  for (const line of text.split(/\r?\n/)) {
    section = /^\s*\[\s*(.+?)\s*\]/.exec(line)?.[1] ?? section;
    const [, name = '', value = ''] = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (section === (profile ?? 'default')) values.set(name, value);
  }
  const [id, secret, token] = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'].map((name) =>
    values.get(name),
  );
  return toCredentials(id, secret, token);
}
