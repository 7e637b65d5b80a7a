-- Times are milliseconds since 1970, except in audit_entries: its columns are those of the HTTP
-- interface. Text is ordered and compared byte by byte.

CREATE TABLE vault (
  id              integer PRIMARY KEY CHECK (id = 1),
  key_check       text   NOT NULL,
  created_at      bigint NOT NULL,
  -- The latest time that the vault has recorded: a clock that is moved back does not extend a lease or a session.
  high_water_time bigint NOT NULL,
  vault_id        text   NOT NULL
);

CREATE TABLE audit_entries (
  :columns,
  -- For lists with a filter: the columns that filters compare, in the order of the log.
  PRIMARY KEY (seq) INCLUDE (agent_name, event_type, action, result, resource),
  CHECK (seq > 0)
);
-- WHY the state in the index: the newest one of a subject is found without reading the entry.
CREATE INDEX audit_entries_by_subject ON audit_entries (subject, seq, state) WHERE subject IS NOT NULL;

-- The lock of this row serializes the transactions of all nodes. Every batch updates it; the fill factor keeps updates
-- in its page.
CREATE TABLE audit_head (
  id      integer PRIMARY KEY CHECK (id = 1),
  seq     bigint NOT NULL,
  hmac    text COLLATE "C" NOT NULL,
  mac     text COLLATE "C" NOT NULL,
  epoch   bigint NOT NULL,
  -- The roots of the complete subtrees of which the tree consists, as base64.
  tree    text COLLATE "C" NOT NULL,
  -- The digest of agents, operators and policies.
  control text COLLATE "C" NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0);

-- The roots of complete subtrees with 2^level leaves, for the levels 8, 16, 24 …
CREATE TABLE audit_tree (
  :columns,
  PRIMARY KEY (level, position)
);

-- The signed notes. The key allows one root for a size of one log; an accepted roll-back begins another log.
CREATE TABLE checkpoints (
  :columns,
  PRIMARY KEY (generation, size)
);

-- How far each log stream has sent the log: the position is in the database, so that it belongs to this log after a
-- restart, a failover or a restored backup.
CREATE TABLE log_streams (
  :columns,
  PRIMARY KEY (name)
);

-- One row: all keys of the vault, encrypted under the root key.
CREATE TABLE keyset (
  :columns,
  PRIMARY KEY (id),
  CHECK (id = 1)
);

-- Each slot has the root key, encrypted to its public key.
CREATE TABLE key_slots (
  :columns,
  PRIMARY KEY (id),
  UNIQUE (name)
);

-- How many values were encrypted under each data key.
CREATE TABLE data_key_seals (
  :columns,
  PRIMARY KEY (key_id)
) WITH (fillfactor = 10);

-- `epoch` is that of the batch that wrote the row; a node reads the rows of later epochs to catch up.
CREATE TABLE agents (
  :columns,
  epoch bigint NOT NULL,
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX agents_by_name ON agents (lower(name));
CREATE INDEX agents_by_epoch ON agents (epoch);

-- The people who run the vault: with a key, passkeys, or an identity at a provider.
CREATE TABLE operators (
  :columns,
  epoch bigint NOT NULL,
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX operators_by_name ON operators (lower(name));
CREATE INDEX operators_by_epoch ON operators (epoch);

CREATE TABLE policies (
  :columns,
  epoch bigint NOT NULL,
  PRIMARY KEY (name)
);
CREATE INDEX policies_by_epoch ON policies (epoch);

-- Deleted agents, operators and policies (with an empty id), with the epoch of the batch that deleted them.
CREATE TABLE control_removals (
  epoch    bigint NOT NULL,
  resource text COLLATE "C" NOT NULL,
  id       text COLLATE "C" NOT NULL,
  name     text COLLATE "C" NOT NULL,
  PRIMARY KEY (epoch, resource, id, name)
);

CREATE TABLE sessions (
  :columns,
  PRIMARY KEY (token_hash)
);
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE spent_challenges (
  :columns,
  PRIMARY KEY (id)
);
CREATE INDEX spent_challenges_by_end ON spent_challenges (expires_at);

-- Responses to requests with an Idempotency-Key, as text that the MAC covers.
CREATE TABLE idempotency_records (
  :columns,
  PRIMARY KEY (id)
);
CREATE INDEX idempotency_records_by_end ON idempotency_records (expires_at);

CREATE TABLE credentials (
  :columns,
  PRIMARY KEY (path),
  UNIQUE (id)
);

CREATE TABLE credential_versions (
  :columns,
  PRIMARY KEY (credential_id, version)
);
-- Encrypted values do not compress.
ALTER TABLE credential_versions ALTER COLUMN sealed SET STORAGE EXTERNAL;

-- Retrievals of each credential up to the lease `through_seq` of access_count_progress; a query adds the later leases.
CREATE TABLE access_counts (
  :columns,
  PRIMARY KEY (credential_id)
) WITH (fillfactor = 70);
CREATE TABLE access_count_progress (
  id          integer PRIMARY KEY CHECK (id = 1),
  through_seq bigint NOT NULL
) WITH (fillfactor = 10);

-- Only the row of the credential with that id counts. Targets and placement are JSON, as text that the MAC covers.
CREATE TABLE credential_targets (
  :columns,
  PRIMARY KEY (path)
);

-- `seq` is the sequence number of the audit entry that issued the lease. `kind` is 'retrieve' or 'use'.
CREATE TABLE leases (
  :columns,
  PRIMARY KEY (seq),
  UNIQUE (id)
);
CREATE UNIQUE INDEX leases_by_token ON leases (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX leases_by_agent ON leases (agent_name, seq);
CREATE INDEX leases_by_end ON leases (expires_at);

-- One row revokes every lease that was issued before `seq` to the agent, for the credential, or both, and of the kind;
-- '' means any.
CREATE TABLE bulk_revocations (
  :columns,
  PRIMARY KEY (seq)
);
CREATE INDEX bulk_revocations_by_scope ON bulk_revocations (agent_id, credential_id, seq);

-- Leases with the first revocation that applied while they were active. revoked_at never decreases along seq, so the
-- first bulk revocation of each scope decides.
CREATE VIEW effective_leases AS
SELECT seq, id, kind, agent_id, credential_id, agent_name, path, version, policy_name, issued_at, expires_at,
       coalesce(revoked_at, nullif(least(
         expires_at,
         (SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = l.agent_id
           AND b.credential_id = '' AND b.kind IN ('', l.kind) AND b.seq > l.seq ORDER BY b.seq LIMIT 1),
         (SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = l.agent_id
           AND b.credential_id = l.credential_id AND b.kind IN ('', l.kind) AND b.seq > l.seq ORDER BY b.seq LIMIT 1),
         (SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = ''
           AND b.credential_id = l.credential_id AND b.kind IN ('', l.kind) AND b.seq > l.seq ORDER BY b.seq LIMIT 1),
         (SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = ''
           AND b.credential_id = '' AND b.kind IN ('', l.kind) AND b.seq > l.seq ORDER BY b.seq LIMIT 1)
       ), expires_at)) AS revoked_at, token_hash
FROM leases l;

-- Who has seen ('retrieve') or used each version. A use with the token of a lease ('token') is added with its entry; the
-- leases of retrievals and of other uses are folded in, up to entry through_seq, before they are deleted.
CREATE TABLE exposures (
  :columns,
  PRIMARY KEY (path, credential_id, version, kind, agent_name)
);
CREATE INDEX exposures_by_agent ON exposures (agent_name, path, credential_id, version, kind);
CREATE TABLE exposure_progress (
  :columns,
  PRIMARY KEY (id)
);

-- What people are asked to allow, and what they answered.
CREATE TABLE approvals (
  :columns,
  PRIMARY KEY (id)
);
CREATE INDEX approvals_by_key ON approvals (key, id);
CREATE INDEX approvals_by_expiry ON approvals (expires_at);
CREATE INDEX approvals_by_status ON approvals (status, id);
CREATE INDEX approvals_by_agent ON approvals (agent_id, status, id);
CREATE INDEX approvals_by_agent_name ON approvals (agent_name, status, id);

-- What each approval is about, encrypted.
CREATE TABLE approval_requests (
  :columns,
  PRIMARY KEY (id)
);
CREATE INDEX approval_requests_by_expiry ON approval_requests (expires_at);
