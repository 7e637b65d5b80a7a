/**
 * What the catalogue says about one service: where its key may be used, how the key is placed in a request, what its
 * SDKs read from the environment, and which of its endpoints return other secrets. Data only; a definition never
 * contains a secret. SOURCE: docs/services.md.
 */
import type { PlacementFields, TargetFields } from '../use/target.ts';

/** A variable that an SDK or a command of the service reads, or that its documentation uses in examples. */
export interface SdkVariable {
  readonly name: string;
  /**
   * `base-url`: the URL that replaces the target's origin, followed by `suffix`. `key`: the credential or its
   * placeholder. `fixed`: always `value`.
   */
  readonly holds: 'base-url' | 'key' | 'fixed';
  /** The path that the SDK expects in its base URL, without a slash at the end unless the SDK requires one. */
  readonly suffix?: string;
  readonly value?: string;
  /** `example` if only the documentation passes this variable to the SDK, and the SDK does not read it. */
  readonly readBy: 'sdk' | 'example';
}

export interface KeyForm {
  /** A text without it contains no such key: checked first, because that is fast. */
  readonly keyword: string;
  /** Global, and linear in the text's length: see `src/masking/secret-patterns.ts`. */
  readonly pattern: RegExp;
  /** Whether keys of other companies have the form too, so that it does not tell whose a key is. */
  readonly isShared: boolean;
}

export interface KeyShape {
  /** The prefixes that the service's keys have; for display and for hints, not for validation. */
  readonly prefixes: readonly string[];
  /** Empty if the keys have no form that ordinary text lacks. */
  readonly forms: readonly KeyForm[];
  /** What a placeholder must match, where an SDK or a command rejects or reports other keys; null if none checks. */
  readonly checkedBySdk: RegExp | null;
}

/**
 * An endpoint whose response contains a secret that outlives or exceeds the lease, or that registers a key of the
 * caller. `methods` is null for every method. `path` is a list of segments joined with `/`; in a segment, `*` stands
 * for one or more characters other than `/`, so that `*` alone is exactly one segment. `**` as the last segment is one
 * or more segments.
 */
export interface MintingEndpoint {
  readonly methods: readonly string[] | null;
  readonly path: string;
}

export interface ServiceDefinition {
  readonly name: string;
  readonly title: string;
  /** Empty for a service that is not supported. */
  readonly targets: readonly TargetFields[];
  /**
   * Whether the user must replace the wildcard origin by a host of the same form. WHY: each host belongs to a
   * different customer, so a wildcard in a stored target would let an agent choose where the key is sent.
   */
  readonly needsHost: boolean;
  readonly placement: PlacementFields;
  readonly variables: readonly SdkVariable[];
  readonly key: KeyShape;
  readonly secretEndpoints: readonly MintingEndpoint[];
  /** Limits that the user should know, in whole sentences. */
  readonly notes: readonly string[];
  /** Why the service cannot be used yet; null if it can. */
  readonly unsupported: string | null;
}

type Optional = 'needsHost' | 'placement' | 'variables' | 'secretEndpoints' | 'notes' | 'unsupported';

/** A definition with the defaults: a bearer token, fixed hosts, no variables, no minting endpoints. */
export function defineService(
  fields: Omit<ServiceDefinition, Optional> & Partial<Pick<ServiceDefinition, Optional>>,
): ServiceDefinition {
  return {
    needsHost: false,
    placement: { kind: 'bearer' },
    variables: [],
    secretEndpoints: [],
    notes: [],
    unsupported: null,
    ...fields,
  };
}

export const baseUrl = (name: string, suffix = ''): SdkVariable => ({ name, holds: 'base-url', suffix, readBy: 'sdk' });
export const keyVariable = (name: string, readBy: SdkVariable['readBy'] = 'sdk'): SdkVariable => ({
  name,
  holds: 'key',
  readBy,
});
export const fixedVariable = (name: string, value: string): SdkVariable => ({
  name,
  holds: 'fixed',
  value,
  readBy: 'sdk',
});

export const keyShape = (
  prefixes: readonly string[],
  forms: readonly KeyForm[],
  checkedBySdk: RegExp | null = null,
): KeyShape => ({ prefixes, forms, checkedBySdk });
export const ownForm = (keyword: string, pattern: RegExp): KeyForm => ({ keyword, pattern, isShared: false });
export const sharedForm = (keyword: string, pattern: RegExp): KeyForm => ({ keyword, pattern, isShared: true });

/** Minting endpoints of lines such as `POST /v1/keys` or `POST,PUT /v1/keys/*`; `ANY` is every method. */
export function mintingEndpoints(...lines: readonly string[]): MintingEndpoint[] {
  return lines.map((line) => {
    const [methods = '', path = ''] = line.split(' ');
    return { methods: methods === 'ANY' ? null : methods.split(','), path };
  });
}
