/** What somebody else changed of the targets of a credential. */
import type { CredentialTargets } from '../../../../src/client/types.ts';
import { type Conflict, findConflict, type ListedFields } from '../../components/edit-conflict.tsx';
import { client } from '../../session/console-client.ts';

export function findTargetsConflict(failure: unknown, path: string): Promise<Conflict<CredentialTargets> | null> {
  return findConflict(failure, {
    read: () => client.targets.readTagged(path),
    resource: path,
    events: ['target.put', 'target.delete'],
  });
}

export function targetFields({ service, targets, placement }: CredentialTargets): ListedFields {
  return {
    service: service === null ? [] : [service],
    targets: targets.map(({ origin, paths, methods, allow_networks, ca_pem }) =>
      [
        `${origin} ${paths.join(' ')} (${methods.join(', ')})`,
        ...(allow_networks.length === 0 ? [] : [`networks ${allow_networks.join(' ')}`]),
        ...(ca_pem === null ? [] : ['own certificate authorities']),
      ].join(', '),
    ),
    placement: Object.entries(placement).map(([name, value]) => `${name} ${value}`),
  };
}
