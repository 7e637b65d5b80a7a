-- The initial schema. Times are milliseconds since 1970, except in audit_entries: its columns are those of the HTTP
-- interface.

CREATE TABLE vault (
  id              INTEGER PRIMARY KEY CHECK (id = 1),
  key_check       TEXT    NOT NULL,
  created_at      INTEGER NOT NULL,
  -- The latest time that the vault has recorded: a clock that is set back before a start does not extend a lease or a
  -- session.
  high_water_time INTEGER NOT NULL
) STRICT;

CREATE TABLE audit_entries (
  seq         INTEGER PRIMARY KEY CHECK (seq > 0),
  id          TEXT NOT NULL,
  timestamp   TEXT NOT NULL,
  event_type  TEXT NOT NULL,
  agent_name  TEXT NOT NULL,
  resource    TEXT NOT NULL,
  action      TEXT NOT NULL,
  result      TEXT NOT NULL,
  policy_name TEXT,
  lease_id    TEXT,
  reason      TEXT,
  request_id  TEXT,
  remote_addr TEXT,
  hmac        TEXT NOT NULL
) STRICT;

CREATE TABLE audit_head (
  id                  INTEGER PRIMARY KEY CHECK (id = 1),
  seq                 INTEGER NOT NULL,
  hmac                TEXT    NOT NULL,
  mac                 TEXT    NOT NULL,
  epoch               INTEGER NOT NULL,
  -- `access_counts` includes all retrievals up to this entry.
  counted_through_seq INTEGER NOT NULL
) STRICT;

CREATE TABLE agents (
  id            TEXT    PRIMARY KEY,
  name          TEXT    NOT NULL,
  description   TEXT    NOT NULL,
  public_key    TEXT    NOT NULL,
  registered_at INTEGER NOT NULL,
  mac           TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX agents_by_name ON agents (lower(name));

CREATE TABLE policies (
  name            TEXT    PRIMARY KEY,
  principal       TEXT    NOT NULL,
  resources       TEXT    NOT NULL,
  actions         TEXT    NOT NULL,
  max_ttl_seconds INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  mac             TEXT    NOT NULL
) STRICT;

CREATE TABLE sessions (
  token_hash TEXT    PRIMARY KEY,
  agent_id   TEXT    NOT NULL,
  issued_at  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  mac        TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE spent_challenges (
  id         TEXT    PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX spent_challenges_by_end ON spent_challenges (expires_at);

-- Responses to POST requests with an Idempotency-Key, kept for a day. A rowid table, so that rows are appended: ids are
-- MACs and would be inserted at random positions.
CREATE TABLE idempotency_records (
  id          TEXT    PRIMARY KEY,
  agent_id    TEXT    NOT NULL,
  request_mac TEXT    NOT NULL,
  reply       TEXT    NOT NULL,
  expires_at  INTEGER NOT NULL,
  mac         TEXT    NOT NULL
) STRICT;
CREATE INDEX idempotency_records_by_end ON idempotency_records (expires_at);

-- Ordered by path. The row holds its newest version (with the row's version and type, stored at `newest_at`) if that is
-- small, so that a retrieval reads one row. Larger and older versions are in `credential_versions`.
CREATE TABLE credentials (
  id            TEXT    NOT NULL UNIQUE,
  path          TEXT    PRIMARY KEY,
  type          TEXT    NOT NULL,
  description   TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  version       INTEGER NOT NULL,
  mac           TEXT    NOT NULL,
  count_id      INTEGER NOT NULL,
  newest_at     INTEGER,
  newest_sealed BLOB
) STRICT, WITHOUT ROWID;

-- Retrievals of the credential with that `count_id`, up to the entry `through_seq`. Separate, small rows: one page
-- holds dozens of counts. AUTOINCREMENT never reuses an id, so that a late count is never added to another credential.
CREATE TABLE access_counts (
  count_id    INTEGER PRIMARY KEY AUTOINCREMENT,
  count       INTEGER NOT NULL,
  through_seq INTEGER NOT NULL
) STRICT;

CREATE TABLE credential_versions (
  credential_id TEXT    NOT NULL,
  version       INTEGER NOT NULL,
  type          TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  sealed        BLOB    NOT NULL,
  PRIMARY KEY (credential_id, version)
) STRICT, WITHOUT ROWID;

-- `seq` is the sequence number of the audit entry that issued the lease, so that rows are appended.
CREATE TABLE leases (
  seq           INTEGER PRIMARY KEY,
  id            TEXT    NOT NULL UNIQUE,
  agent_id      TEXT    NOT NULL,
  credential_id TEXT    NOT NULL,
  agent_name    TEXT    NOT NULL,
  path          TEXT    NOT NULL,
  version       INTEGER NOT NULL,
  policy_name   TEXT    NOT NULL,
  issued_at     INTEGER NOT NULL,
  expires_at    INTEGER NOT NULL,
  revoked_at    INTEGER
) STRICT;
-- WHY not an index on path or agent: nearly every retrieval would write one more page. Queries by path alone are rare
-- and scan the table; queries by agent read the blocks of 4,096 sequence numbers in which the agent has leases.
CREATE TABLE lease_spans (
  agent_name TEXT    NOT NULL,
  span       INTEGER NOT NULL,
  PRIMARY KEY (agent_name, span)
) STRICT, WITHOUT ROWID;

-- One row revokes every lease that was issued before `seq` to the agent, for the credential, or both; '' means any.
CREATE TABLE bulk_revocations (
  seq           INTEGER PRIMARY KEY,
  agent_id      TEXT    NOT NULL,
  credential_id TEXT    NOT NULL,
  revoked_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX bulk_revocations_by_scope ON bulk_revocations (agent_id, credential_id, seq);

-- Leases with the first revocation that applied while they were active. revoked_at never decreases along seq, so the
-- first bulk revocation of each scope decides.
CREATE VIEW effective_leases AS
SELECT seq, id, agent_id, credential_id, agent_name, path, version, policy_name, issued_at, expires_at,
       coalesce(revoked_at, nullif(min(
         expires_at,
         coalesce((SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = l.agent_id
           AND b.credential_id = '' AND b.seq > l.seq ORDER BY b.seq LIMIT 1), expires_at),
         coalesce((SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = l.agent_id
           AND b.credential_id = l.credential_id AND b.seq > l.seq ORDER BY b.seq LIMIT 1), expires_at),
         coalesce((SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = ''
           AND b.credential_id = l.credential_id AND b.seq > l.seq ORDER BY b.seq LIMIT 1), expires_at)
       ), expires_at)) AS revoked_at
FROM leases l;
