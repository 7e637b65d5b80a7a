/** The fields of targets as text, with the parser's error for each field. */
import type { CredentialTargets, PutTargetsRequest } from '../../../../src/client/types.ts';
import { ruleBroken } from '../../../../src/engine/errors.ts';
import {
  type PlacementFields,
  parsePlacement,
  parseTargets,
  type TargetFields,
} from '../../../../src/vault/use/target.ts';

export interface TargetText {
  /** Identifies the fields while they are edited. */
  readonly id: number;
  readonly origin: string;
  /** The paths, one on each line. */
  readonly paths: string;
  readonly methods: string;
  readonly networks: string;
  readonly ca_pem: string | null;
}

export interface TargetsText {
  /** The name of a row of the catalogue; empty for custom origins. */
  readonly service: string;
  readonly targets: readonly TargetText[];
  readonly kind: PlacementFields['kind'];
  readonly name: string;
  readonly template: string;
  readonly username: string;
}

const NEW_TARGET = { origin: 'https://', paths: '/*', methods: 'GET POST', networks: '', ca_pem: null };
export const newTarget = (id: number): TargetText => ({ id, ...NEW_TARGET });

const NO_PLACEMENT = { kind: 'bearer', name: '', template: '', username: '' } as const;

export const NEW_TARGETS: TargetsText = {
  service: '',
  targets: [newTarget(0)],
  ...NO_PLACEMENT,
};

type Known = Pick<CredentialTargets, 'targets' | 'placement'>;

export function toText({ targets, placement }: Known, service: string): TargetsText {
  return {
    service,
    targets: targets.map(({ origin, paths, methods, allow_networks, ca_pem }, id) => ({
      id,
      origin,
      paths: paths.join('\n'),
      methods: methods.join(' '),
      networks: (allow_networks ?? []).join(' '),
      ca_pem: ca_pem ?? null,
    })),
    ...NO_PLACEMENT,
    ...placement,
  };
}

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');

function toTarget({ origin, paths, methods, networks, ca_pem }: TargetText): TargetFields {
  return {
    origin: origin.trim(),
    paths: words(paths),
    methods: words(methods),
    ...(networks.trim() === '' ? {} : { allow_networks: words(networks) }),
    ...(ca_pem === null ? {} : { ca_pem }),
  };
}

export interface CheckedTargets {
  /** Null while a problem exists. */
  readonly body: PutTargetsRequest | null;
  readonly problem: string | null;
}

function toPlacement({ kind, name, template, username }: TargetsText): PlacementFields {
  switch (kind) {
    case 'bearer':
      return { kind };
    case 'header':
      return { kind, name: name.trim(), ...(template === '' ? {} : { template }) };
    case 'basic':
      return { kind, ...(username === '' ? {} : { username }) };
    case 'query':
      return { kind, name: name.trim() };
  }
}

export function checkTargets(text: TargetsText): CheckedTargets {
  const { service } = text;
  const placement = toPlacement(text);
  const targets = text.targets.map(toTarget);
  const problem = ruleBroken(() => parseTargets(targets)) ?? ruleBroken(() => parsePlacement(placement));
  const body = { ...(service === '' ? {} : { service }), targets, placement };
  return problem === null ? { body, problem } : { body: null, problem };
}
