/** The data of the crash test's load: writers, readers, and the max_ttl of each policy. */
import assert from 'node:assert/strict';
import type { KeyObject } from 'node:crypto';
import type { Client } from '../kit/client.ts';

/** The service as the load and the inspection see it: one process, or any of several nodes. */
export interface Target {
  readonly address: string;
  readonly admin: Client;
  /** The private key that the service made for the agent. */
  keyOf(name: string): KeyObject;
  /** The audit key, as exported for auditors. */
  readonly auditKey: string;
  /** Contains the keys of all agents and nothing else; null if several nodes have them. */
  readonly agentsDir: string | null;
  /** A file used only for the inspection. */
  readonly scratchFile: string;
}

/** A directory has one writer: the order of what happens to a path is the order of that client's calls. */
export const DIRECTORIES = ['load/w0', 'load/w1', 'load/w2'] as const;
export const NAMES = ['a', 'b', 'c', 'd'] as const;
export const PATHS: readonly string[] = DIRECTORIES.flatMap((directory) => NAMES.map((name) => `${directory}/${name}`));
export const READERS = ['reader-0', 'reader-1', 'reader-2', 'reader-3'] as const;

/** Each policy's `max_ttl` follows from its name, so that an entry's policy tells how long its lease is. */
const TTLS: Readonly<Record<string, number>> = {
  'builtin:admin': 3600,
  standing: 3500,
  temps: 2000,
  'grant-0': 3000,
  'grant-1': 3001,
  'grant-2': 3002,
};

export function ttlMs(policyName: string | null): number {
  const seconds = TTLS[policyName ?? ''];
  assert.ok(seconds, `an unknown policy decided: ${policyName}`);
  return seconds * 1000;
}

export function principalOf(policyName: string): string {
  return policyName === 'temps' ? 'agent:temp-*' : 'agent:reader-*';
}

/** The policy as it is sent, and as it is returned except for its time. */
export function policyBody(name: string, resources: readonly string[]) {
  return { name, principal: principalOf(name), resources, actions: ['retrieve'], max_ttl: ttlMs(name) / 1000 };
}
