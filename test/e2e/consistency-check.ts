/** Compares a restarted service with the responses that its clients received: all of their effects and no others. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import { createClient } from '../kit/client.ts';
import type { Call, Journal } from './client-journal.ts';
import { policyBody, READERS, type Target } from './fixture.ts';
import { explain, Replay } from './log-replay.ts';

const VERIFIER = join(import.meta.dirname, '../../scripts/verify_audit.py');
const SESSIONS_TRIED = 12;
const VERSIONS_KEPT = 10;

export interface Counter {
  acknowledged: number;
  inFlight: number;
  /** How many of the calls in flight took effect. */
  happened: number;
  entries: number;
}

export class Inspector {
  readonly tally: Counter = { acknowledged: 0, inFlight: 0, happened: 0, entries: 0 };
  readonly #journal: Journal;
  readonly #replay = new Replay();
  #seen: readonly AuditEntry[] = [];

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** `calls`: all since the last inspection. Its own calls go into the journal, and are looked for the next time. */
  async inspect(target: Target, calls: readonly Call[]): Promise<void> {
    const entries = await this.#readLog(target);
    const news = entries.slice(this.#seen.length);
    assert.deepEqual(
      entries.slice(0, this.#seen.length).map(({ hmac }) => hmac),
      this.#seen.map(({ hmac }) => hmac),
      'entries that were there before are there still',
    );
    const explained = explain(news, calls);
    for (const [entry, call] of [...explained].sort(([a], [b]) => a.seq - b.seq)) this.#replay.apply(entry, call);
    this.#seen = entries;
    this.#count(calls, [...explained.values()]);
    this.#checkAccessCounts(entries);
    await this.#checkCredentials(target);
    await this.#checkLeases(target);
    await this.#checkPolicies(target);
    await this.#checkAgents(target);
    await this.#checkSessions(target, calls);
    await this.#checkValues(target);
    await this.#checkState(target);
  }

  #count(calls: readonly Call[], explained: readonly Call[]): void {
    const { tally } = this;
    const answered = calls.filter(({ answer }) => answer !== null).length;
    tally.acknowledged += answered;
    tally.inFlight += calls.length - answered;
    tally.happened += explained.filter(({ answer }) => answer === null).length;
    tally.entries = this.#seen.length;
  }

  /** The whole log, whose chain the service and the offline verifier found valid. */
  async #readLog({ admin, auditKey, scratchFile }: Target): Promise<AuditEntry[]> {
    const exported = await admin.get('/api/v1/audit/export');
    assert.equal(exported.status, 200);
    const entries: AuditEntry[] = exported.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const verified = await admin.get('/api/v1/audit/verify');
    const verdict = {
      valid: true,
      entries: entries.length,
      first_entry: entries.at(0)?.timestamp,
      last_entry: entries.at(-1)?.timestamp,
    };
    assert.deepEqual(verified.body, { data: verdict });
    writeFileSync(scratchFile, exported.text);
    const head = exported.headers.get('leasehold-audit-head') ?? '';
    const { PATH = '' } = process.env;
    const { stdout } = await promisify(execFile)('python3', [VERIFIER, scratchFile, '--head', head], {
      env: { PATH, LEASEHOLD_AUDIT_KEY: auditKey },
    });
    assert.deepEqual(JSON.parse(stdout), verdict);
    return entries;
  }

  /** Counted from the log only: every allowed retrieval since the credential was created. */
  #checkAccessCounts(entries: readonly AuditEntry[]): void {
    const counts = new Map<string, number>();
    for (const { event_type, result, resource } of entries) {
      if (result !== 'allowed') continue;
      if (event_type === 'credential.delete') counts.delete(resource);
      if (event_type === 'credential.retrieve') counts.set(resource, (counts.get(resource) ?? 0) + 1);
    }
    for (const [path, { retrievals }] of this.#replay.credentials) {
      assert.equal(retrievals, counts.get(path) ?? 0, path);
    }
  }

  async #checkCredentials({ admin }: Target): Promise<void> {
    const listed = await this.#journal.send({ event: 'credential.list', agentName: 'admin', resource: '*' }, () =>
      admin.get('/api/v1/credentials'),
    );
    const expected = [...this.#replay.credentials].map(([path, { versions, retrievals, ...rest }]) => ({
      path,
      type: rest.type,
      description: rest.description,
      created_at: rest.createdAt,
      updated_at: versions.at(-1)?.createdAt,
      access_count: retrievals,
    }));
    assert.deepEqual(
      listed?.body.data,
      expected.sort((a, b) => (a.path < b.path ? -1 : 1)),
    );
    for (const [path, { versions }] of this.#replay.credentials) {
      const told = { event: 'credential.list', agentName: 'admin', resource: path };
      const seen = await this.#journal.send(told, () => admin.get(`/api/v1/credentials/${path}?view=metadata`));
      const kept = versions.map(({ createdAt }, index) => ({ version: index + 1, created_at: createdAt }));
      assert.deepEqual(seen?.body.data.versions, kept.slice(-VERSIONS_KEPT), path);
    }
  }

  async #checkLeases({ admin }: Target): Promise<void> {
    const { body } = await admin.get('/api/v1/leases');
    const expected = [...this.#replay.leases.values()].reverse();
    assert.deepEqual(body.data, expected);
  }

  async #checkPolicies({ admin }: Target): Promise<void> {
    const { body } = await admin.get('/api/v1/policies');
    const listed: Record<string, unknown>[] = body.data;
    const expected = [...this.#replay.policies].map(([name, resources]) => policyBody(name, [...new Set(resources)]));
    assert.deepEqual(
      listed.map(({ created_at: _, ...policy }) => policy),
      expected.sort((a, b) => (a.name < b.name ? -1 : 1)),
    );
  }

  /** Every agent has its key, every key its agent, and the key directory contains nothing else. */
  async #checkAgents({ admin, agentsDir, keyOf }: Target): Promise<void> {
    const { body } = await admin.get('/api/v1/agents');
    const listed: { name: string; public_key: string }[] = body.data;
    assert.deepEqual(
      listed.map(({ name }) => name),
      [...this.#replay.agents.keys()].sort(),
    );
    for (const { name, public_key } of listed) {
      assert.equal(public_key, this.#replay.agents.get(name) ?? public_key, name);
      // A key that was not acknowledged may still be pending on the node that created it.
      if (agentsDir === null && this.#replay.agents.get(name) === null) continue;
      const { x = '' } = createPublicKey(keyOf(name)).export({ format: 'jwk' });
      assert.equal(Buffer.from(x, 'base64url').toString('base64'), public_key, name);
    }
    if (agentsDir === null) return;
    const found = readdirSync(agentsDir, { recursive: true }).map(String).sort();
    const files = listed.flatMap(({ name }) => [name, `${name}/agent_id`, `${name}/private_key.pem`]);
    assert.deepEqual(found, ['.pending', ...files].sort());
  }

  /** Sessions survive the crash, ended ones stay ended, and a used challenge stays consumed. */
  async #checkSessions({ address }: Target, calls: readonly Call[]): Promise<void> {
    for (const [token, { agentName, expiresAt }] of [...this.#replay.sessions].slice(-SESSIONS_TRIED)) {
      const { body } = await createClient(address, token).get('/auth/session');
      const { expires_in, ...data } = body.data;
      assert.deepEqual(data, { session_id: token, agent_name: agentName, expires_at: expiresAt });
      assert.equal(typeof expires_in, 'number');
    }
    for (const token of [...this.#replay.endedSessions].slice(-SESSIONS_TRIED)) {
      assert.equal((await createClient(address, token).get('/auth/session')).status, 401);
    }
    const logins = calls.filter(({ proof, answer, agentName }) => {
      return proof !== undefined && answer !== null && READERS.some((name) => name === agentName);
    });
    for (const { event, agentName, resource, proof } of logins.slice(-2)) {
      const answer = await this.#journal.send({ event, agentName, resource }, () =>
        createClient(address, null).post('/auth/verify', proof),
      );
      assert.equal(answer?.status, 401, 'a challenge works once, over crashes too');
    }
  }

  /** No row, removal or value looks as if it was altered outside. */
  async #checkState({ admin }: Target): Promise<void> {
    const { body, text } = await admin.get('/api/v1/audit/verify?state=true&values=true');
    assert.deepEqual(body.data?.state?.problems, [], text);
    assert.ok(body.data.state.checked > 0);
  }

  async #checkValues({ admin }: Target): Promise<void> {
    for (const [path, { versions }] of this.#replay.credentials) {
      const told = { event: 'credential.retrieve', agentName: 'admin', resource: path };
      const answer = await this.#journal.send(told, () => admin.get(`/api/v1/credentials/${path}`));
      assert.equal(answer?.body.data.value, versions.at(-1)?.value, path);
    }
  }
}
