/** Prints where a credential may be used. */
import type { CredentialTargets } from '../../client/types.ts';
import type { Output } from './output.ts';

/** For people a table of the targets follows the fields of the credential. */
export async function printTargets(output: Output, usage: CredentialTargets): Promise<void> {
  if (!output.isForPeople) return output.record(usage);
  const { path, service, placement, updated_at, targets } = usage;
  await output.record({ path, service, sent_as: placementWords(placement), updated_at });
  output.text('');
  const rows = targets.map(({ ca_pem, ...others }) => ({
    ...others,
    certificates: ca_pem === null ? 'public' : 'own authority',
  }));
  await output.records(rows, ['origin', 'paths', 'methods', 'allow_networks', 'certificates'], null);
}

function placementWords({ kind, name, template, username }: CredentialTargets['placement']): string {
  if (kind === 'header') return `header ${name}: ${template ?? '{value}'}`;
  if (kind === 'query') return `query parameter ${name}`;
  if (kind === 'basic') return username === undefined ? 'basic' : `basic with user ${username}`;
  return 'bearer token';
}
