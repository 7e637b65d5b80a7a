/** What a source is read into: drafts of credentials, and what was left out, with the reason. A value is a `Secret` from the start. */
import type { Secret } from '../../core/secret.ts';

export interface Draft {
  /** As the source calls it, the outermost first; what fits no path is mapped by `naming.ts` alone. */
  readonly names: readonly string[];
  readonly value: Secret;
  /** Null leaves it to the service: `generic`, or what the credential has. */
  readonly type: string | null;
  readonly description: string;
  /** For a person who looks it up: `.env:7`, the title of an item. May hold anything: to be shown escaped. */
  readonly where: string;
}

export interface Skipped {
  readonly where: string;
  readonly reason: string;
  /** `empty`: there was no value to store. `refused`: there was one, and it is not in the vault. */
  readonly kind: 'empty' | 'refused';
}

export interface ImportSource {
  readonly drafts: readonly Draft[];
  readonly leftOut: readonly Skipped[];
}

/** A reading under way. */
export class Reader {
  readonly drafts: Draft[] = [];
  readonly leftOut: Skipped[] = [];

  add(draft: Draft): void {
    this.drafts.push(draft);
  }

  leaveOut(where: string, reason: string, kind: Skipped['kind'] = 'refused'): void {
    this.leftOut.push({ where, reason, kind });
  }
}

const TYPES: readonly [pattern: RegExp, type: string][] = [
  [/(?:^|[^a-z])(?:pass(?:word|wd|phrase)?|pwd)$/i, 'password'],
  [/api[_-]?key$/i, 'api_key'],
  [/private[_-]?key$/i, 'ssh_key'],
  [/(?:^|[^a-z])(?:cert|certificate)$/i, 'certificate'],
  [/token$/i, 'token'],
];

/** The well-known type that a name ends in; null where it says nothing. */
export function typeByName(name: string): string | null {
  return TYPES.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}

/** The host that an item is for, as its description. WHY not its address: a link may hold a key of its own, and descriptions are listed. */
export function siteOf(address: string | null): string {
  if (address === null || address === '') return '';
  const url = URL.parse(address) ?? URL.parse(`https://${address}`);
  return url !== null && /^https?:$/.test(url.protocol) ? url.hostname : '';
}
