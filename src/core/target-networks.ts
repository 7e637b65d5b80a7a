/**
 * The rules about the networks of targets: which ones no target ever reaches, which ones this server's targets may
 * name, and which fields of a target are an operator's decision. SOURCE: docs/use.md, "Where a credential may go".
 */
import { containsNetwork, type IpNetwork, parseIpNetwork } from './ip-network.ts';

/**
 * Services from which a machine of a cloud reads its own identity and credentials: of Alibaba, Azure, AWS, Oracle,
 * Google and Scaleway outside of link-local addresses, which are all included.
 */
export const METADATA_NETWORKS: readonly IpNetwork[] = [
  ...['169.254.0.0/16', 'fe80::/10', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
  ...['fd00:ec2::/32', 'fd20:ce::254/128', 'fd00:42::42/128'],
].flatMap((text) => parseIpNetwork(text) ?? []);

/** What the rules read of a target. */
interface Reach {
  readonly scheme: 'https' | 'http';
  readonly allowNetworks: readonly string[];
  readonly caPem: string | null;
}

/** A field of a target that breaks a rule about networks, and the rule. */
export interface NetworkViolation {
  readonly field: string;
  readonly rule: string;
}

/** The first field that an agent may not set; null for public targets over HTTPS. */
export function operatorField(targets: readonly Reach[]): string | null {
  for (const [index, { scheme, allowNetworks, caPem }] of targets.entries()) {
    const field = `targets[${index}]`;
    if (allowNetworks.length > 0) return `${field}.allow_networks`;
    if (scheme === 'http') return `${field}.origin`;
    if (caPem !== null) return `${field}.ca_pem`;
  }
  return null;
}

/** The first network that this server's targets may not name; null if there is none. `limits`: null for all. */
export function networkViolation(
  targets: readonly Reach[],
  limits: readonly IpNetwork[] | null,
): NetworkViolation | null {
  if (limits === null) return null;
  const field = firstNetwork(targets, (network) => network === null || !isWithin(network, limits));
  const names = limits.map((each) => each.text).join(', ');
  const rule =
    names === ''
      ? 'must be empty: this server allows no internal network (--target-networks none)'
      : `must be within ${names}, the networks that this server allows (--target-networks)`;
  return field === null ? null : { field, rule };
}

/** The field of the first network of which no target reaches any address; null if there is none. */
export function unreachableNetwork(targets: readonly Reach[]): string | null {
  return firstNetwork(targets, (network) => network !== null && isWithin(network, METADATA_NETWORKS));
}

const isWithin = (network: IpNetwork, outer: readonly IpNetwork[]): boolean =>
  outer.some((each) => containsNetwork(each, network));

/** The field of the first network for which `matches` holds; it gets null for a text that is no network. */
function firstNetwork(targets: readonly Reach[], matches: (network: IpNetwork | null) => boolean): string | null {
  for (const [index, { allowNetworks }] of targets.entries()) {
    const at = allowNetworks.findIndex((text) => matches(parseIpNetwork(text)));
    if (at !== -1) return `targets[${index}].allow_networks[${at}]`;
  }
  return null;
}
