-- Times are milliseconds since 1970, except in audit_entries: its columns are those of the HTTP
-- interface.

CREATE TABLE vault (
  id              INTEGER PRIMARY KEY CHECK (id = 1),
  key_check       TEXT    NOT NULL,
  created_at      INTEGER NOT NULL,
  -- The latest time that the vault has recorded: a clock that is moved back before a start does not extend a lease or a
  -- session.
  high_water_time INTEGER NOT NULL,
  vault_id        TEXT    NOT NULL
) STRICT;

CREATE TABLE audit_entries (
  :columns,
  PRIMARY KEY (seq),
  CHECK (seq > 0)
) STRICT;
-- WHY the state in the index: the newest one of a subject is found without reading the entry.
CREATE INDEX audit_entries_by_subject ON audit_entries (subject, seq, state) WHERE subject IS NOT NULL;
-- For lists with a filter: a narrow copy, in the order of the log, of the columns that filters compare.
CREATE INDEX audit_entries_by_filter ON audit_entries (seq, agent_name, event_type, action, result, resource);

CREATE TABLE audit_head (
  id                  INTEGER PRIMARY KEY CHECK (id = 1),
  seq                 INTEGER NOT NULL,
  hmac                TEXT    NOT NULL,
  mac                 TEXT    NOT NULL,
  epoch               INTEGER NOT NULL,
  -- `access_counts` includes all retrievals up to this entry.
  counted_through_seq INTEGER NOT NULL,
  -- The roots of the complete subtrees of which the tree consists, as base64.
  tree                TEXT    NOT NULL,
  -- The digest of agents, operators and policies.
  control             TEXT    NOT NULL
) STRICT;

-- The roots of complete subtrees with 2^level leaves, for the levels 8, 16, 24 …
CREATE TABLE audit_tree (
  :columns,
  PRIMARY KEY (level, position)
) STRICT, WITHOUT ROWID;

-- The signed notes. The key allows one root for a size of one log; an accepted roll-back begins another log.
CREATE TABLE checkpoints (
  :columns,
  PRIMARY KEY (generation, size)
) STRICT, WITHOUT ROWID;

-- How far each log stream has sent the log: the position is in the database, so that it belongs to this log after a
-- restart, a failover or a restored backup.
CREATE TABLE log_streams (
  :columns,
  PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

-- One row: all keys of the vault, encrypted under the root key.
CREATE TABLE keyset (
  :columns,
  PRIMARY KEY (id),
  CHECK (id = 1)
) STRICT;

-- Each slot has the root key, encrypted to its public key.
CREATE TABLE key_slots (
  :columns,
  PRIMARY KEY (id),
  UNIQUE (name)
) STRICT;

-- How many values were encrypted under each data key.
CREATE TABLE data_key_seals (
  :columns,
  PRIMARY KEY (key_id)
) STRICT;

CREATE TABLE agents (
  :columns,
  PRIMARY KEY (id)
) STRICT;
CREATE UNIQUE INDEX agents_by_name ON agents (lower(name));

-- The people who run the vault: with a key, passkeys, or an identity at a provider.
CREATE TABLE operators (
  :columns,
  PRIMARY KEY (id)
) STRICT;
CREATE UNIQUE INDEX operators_by_name ON operators (lower(name));

CREATE TABLE policies (
  :columns,
  PRIMARY KEY (name)
) STRICT;

CREATE TABLE sessions (
  :columns,
  PRIMARY KEY (token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE spent_challenges (
  :columns,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX spent_challenges_by_end ON spent_challenges (expires_at);

-- Responses to POST requests with an Idempotency-Key, kept for a day. A rowid table, so that rows are appended: ids are
-- MACs and would be inserted at random positions.
CREATE TABLE idempotency_records (
  :columns,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX idempotency_records_by_end ON idempotency_records (expires_at);

-- Ordered by path. The row holds its newest version (with the row's version and type, stored at `newest_at`) if that is
-- small, so that a retrieval reads one row. Larger and older versions are in `credential_versions`.
CREATE TABLE credentials (
  :columns,
  count_id      INTEGER NOT NULL,
  newest_at     INTEGER,
  newest_sealed BLOB,
  PRIMARY KEY (path),
  UNIQUE (id)
) STRICT, WITHOUT ROWID;

-- Retrievals of the credential with that `count_id`, up to the entry `through_seq`. Separate, small rows: one page
-- holds dozens of counts. AUTOINCREMENT never reuses an id, so that a late count is never added to another credential.
CREATE TABLE access_counts (
  count_id    INTEGER PRIMARY KEY AUTOINCREMENT,
  count       INTEGER NOT NULL,
  through_seq INTEGER NOT NULL
) STRICT;

CREATE TABLE credential_versions (
  :columns,
  PRIMARY KEY (credential_id, version)
) STRICT, WITHOUT ROWID;

-- Only the row of the credential with that id counts. Targets and placement are JSON.
CREATE TABLE credential_targets (
  :columns,
  PRIMARY KEY (path)
) STRICT, WITHOUT ROWID;

-- `seq` is the sequence number of the audit entry that issued the lease, so that rows are appended. `kind` is 'retrieve'
-- or 'use'.
CREATE TABLE leases (
  :columns,
  PRIMARY KEY (seq),
  UNIQUE (id)
) STRICT;
CREATE UNIQUE INDEX leases_by_token ON leases (token_hash) WHERE token_hash IS NOT NULL;
-- WHY not an index on path or agent: nearly every retrieval would write one more page. Queries by path alone are rare
-- and scan the table; queries by agent read the blocks of 4,096 sequence numbers in which the agent has leases.
CREATE TABLE lease_spans (
  agent_name TEXT    NOT NULL,
  span       INTEGER NOT NULL,
  PRIMARY KEY (agent_name, span)
) STRICT, WITHOUT ROWID;

-- One row revokes every lease that was issued before `seq` to the agent, for the credential, or both, and of the kind;
-- '' means any.
CREATE TABLE bulk_revocations (
  :columns,
  PRIMARY KEY (seq)
) STRICT;
CREATE INDEX bulk_revocations_by_scope ON bulk_revocations (agent_id, credential_id, seq);

-- Leases with the first revocation that applied while they were active. revoked_at never decreases along seq, so the
-- first bulk revocation of each scope decides.
CREATE VIEW effective_leases AS
SELECT seq, id, kind, agent_id, credential_id, agent_name, path, version, policy_name, issued_at, expires_at,
       coalesce(revoked_at, nullif(min(
         expires_at,
         coalesce((SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = l.agent_id
           AND b.credential_id = '' AND b.kind IN ('', l.kind) AND b.seq > l.seq ORDER BY b.seq LIMIT 1), expires_at),
         coalesce((SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = l.agent_id
           AND b.credential_id = l.credential_id AND b.kind IN ('', l.kind) AND b.seq > l.seq
           ORDER BY b.seq LIMIT 1), expires_at),
         coalesce((SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = ''
           AND b.credential_id = l.credential_id AND b.kind IN ('', l.kind) AND b.seq > l.seq
           ORDER BY b.seq LIMIT 1), expires_at),
         coalesce((SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = ''
           AND b.credential_id = '' AND b.kind IN ('', l.kind) AND b.seq > l.seq ORDER BY b.seq LIMIT 1), expires_at)
       ), expires_at)) AS revoked_at, token_hash
FROM leases l;

-- Who has seen ('retrieve') or used each version. A use with the token of a lease ('token') is added with its entry; the
-- leases of retrievals and of other uses are folded in, up to entry through_seq, before they are deleted.
CREATE TABLE exposures (
  :columns,
  PRIMARY KEY (path, credential_id, version, kind, agent_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX exposures_by_agent ON exposures (agent_name, path, credential_id, version, kind);
CREATE TABLE exposure_progress (
  :columns,
  PRIMARY KEY (id)
) STRICT;

-- What people are asked to allow, and what they answered.
CREATE TABLE approvals (
  :columns,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX approvals_by_key ON approvals (key, id);
CREATE INDEX approvals_by_expiry ON approvals (expires_at);
CREATE INDEX approvals_by_status ON approvals (status, id);
CREATE INDEX approvals_by_agent ON approvals (agent_id, status, id);
CREATE INDEX approvals_by_agent_name ON approvals (agent_name, status, id);

-- What each approval is about, encrypted.
CREATE TABLE approval_requests (
  :columns,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX approval_requests_by_expiry ON approval_requests (expires_at);
