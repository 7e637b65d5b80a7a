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
  hmac        TEXT NOT NULL,
  -- The fields of a use.
  method      TEXT,
  host        TEXT,
  target_path TEXT,
  status      INTEGER,
  bytes_in    INTEGER,
  bytes_out   INTEGER,
  redactions  INTEGER,
  ended       TEXT,
  -- The row that the entry made, changed or removed, and its MAC from then on, or 'removed'.
  subject     TEXT,
  state       TEXT
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
  level    INTEGER NOT NULL,
  position INTEGER NOT NULL,
  hash     TEXT    NOT NULL,
  PRIMARY KEY (level, position)
) STRICT, WITHOUT ROWID;

-- The signed notes. The key allows one root for a size of one log; an accepted roll-back begins another log.
CREATE TABLE checkpoints (
  generation INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  signed_at  INTEGER NOT NULL,
  note       TEXT    NOT NULL,
  PRIMARY KEY (generation, size)
) STRICT, WITHOUT ROWID;

-- How far each log stream has sent the log: the position is in the database, so that it belongs to this log after a
-- restart, a failover or a restored backup.
CREATE TABLE log_streams (
  name TEXT    PRIMARY KEY,
  seq  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: all keys of the vault, encrypted under the root key.
CREATE TABLE keyset (
  id           INTEGER PRIMARY KEY CHECK (id = 1),
  version      INTEGER NOT NULL,
  root_version INTEGER NOT NULL,
  sealed       BLOB    NOT NULL
) STRICT;

-- Each slot has the root key, encrypted to its public key.
CREATE TABLE key_slots (
  id           TEXT    PRIMARY KEY,
  name         TEXT    NOT NULL UNIQUE,
  kind         TEXT    NOT NULL,
  parameters   TEXT    NOT NULL,
  public_key   TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  root_version INTEGER NOT NULL,
  sealed_root  BLOB    NOT NULL,
  mac          TEXT    NOT NULL
) STRICT;

-- How many values were encrypted under each data key.
CREATE TABLE data_key_seals (
  key_id TEXT    PRIMARY KEY,
  seals  INTEGER NOT NULL
) STRICT;

CREATE TABLE agents (
  id                TEXT    PRIMARY KEY,
  name              TEXT    NOT NULL,
  description       TEXT    NOT NULL,
  public_key        TEXT    NOT NULL,
  registered_at     INTEGER NOT NULL,
  mac               TEXT    NOT NULL,
  -- Sessions that began at this time or earlier have ended.
  sessions_ended_at INTEGER,
  -- The key that the agent had before a rotation; logins with it succeed until `former_key_until`.
  former_public_key TEXT,
  former_key_until  INTEGER,
  -- Who registered the agent or gave it a key.
  registered_by     TEXT
) STRICT;
CREATE UNIQUE INDEX agents_by_name ON agents (lower(name));

-- The people who run the vault: with a key, passkeys, or an identity at a provider.
CREATE TABLE operators (
  id                TEXT    PRIMARY KEY,
  name              TEXT    NOT NULL,
  description       TEXT    NOT NULL,
  roles             TEXT    NOT NULL,
  public_key        TEXT,
  passkeys          TEXT,
  identity          TEXT,
  added_at          INTEGER NOT NULL,
  sessions_ended_at INTEGER,
  mac               TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX operators_by_name ON operators (lower(name));

CREATE TABLE policies (
  name            TEXT    PRIMARY KEY,
  principal       TEXT    NOT NULL,
  resources       TEXT    NOT NULL,
  actions         TEXT    NOT NULL,
  max_ttl_seconds INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  mac             TEXT    NOT NULL,
  -- JSON, the text null without limits or approval.
  limits          TEXT,
  approval        TEXT
) STRICT;

CREATE TABLE sessions (
  token_hash TEXT    PRIMARY KEY,
  agent_id   TEXT    NOT NULL,
  issued_at  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  mac        TEXT    NOT NULL,
  -- Sessions of operators are renewed up to this time.
  ends_at    INTEGER
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

-- Only the row of the credential with that id counts. Targets and placement are JSON.
CREATE TABLE usages (
  path          TEXT    PRIMARY KEY,
  credential_id TEXT    NOT NULL,
  service       TEXT,
  targets       TEXT    NOT NULL,
  placement     TEXT    NOT NULL,
  updated_at    INTEGER NOT NULL,
  mac           TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- `seq` is the sequence number of the audit entry that issued the lease, so that rows are appended. `kind` is 'retrieve'
-- or 'use'.
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
  revoked_at    INTEGER,
  kind          TEXT NOT NULL DEFAULT 'retrieve',
  token_hash    TEXT
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
  seq           INTEGER PRIMARY KEY,
  agent_id      TEXT    NOT NULL,
  credential_id TEXT    NOT NULL,
  revoked_at    INTEGER NOT NULL,
  kind          TEXT NOT NULL DEFAULT ''
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
  path          TEXT    NOT NULL,
  credential_id TEXT    NOT NULL,
  version       INTEGER NOT NULL,
  kind          TEXT    NOT NULL,
  agent_name    TEXT    NOT NULL,
  first_at      INTEGER NOT NULL,
  last_at       INTEGER NOT NULL,
  times         INTEGER NOT NULL,
  PRIMARY KEY (path, credential_id, version, kind, agent_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX exposures_by_agent ON exposures (agent_name, path, credential_id, version, kind);
CREATE TABLE exposure_progress (
  id          INTEGER PRIMARY KEY,
  through_seq INTEGER NOT NULL
) STRICT;

-- What people are asked to allow, and what they answered.
CREATE TABLE approvals (
  id            TEXT PRIMARY KEY,
  nonce         TEXT NOT NULL,
  agent_id      TEXT NOT NULL,
  agent_name    TEXT NOT NULL,
  token_hash    TEXT NOT NULL,
  action        TEXT NOT NULL,
  path          TEXT NOT NULL,
  key           TEXT NOT NULL,
  basis         TEXT NOT NULL,
  terms         TEXT NOT NULL,
  method        TEXT,
  host          TEXT,
  target_path   TEXT,
  purpose       TEXT,
  status        TEXT NOT NULL,
  requested_at  INTEGER NOT NULL,
  answer_by     INTEGER NOT NULL,
  approvers     TEXT NOT NULL,
  ended_by      TEXT,
  ended_at      INTEGER,
  reason        TEXT,
  uses_left     INTEGER,
  grant_ends_at INTEGER,
  expires_at    INTEGER NOT NULL,
  mac           TEXT NOT NULL
) STRICT;
CREATE INDEX approvals_by_key ON approvals (key, id);
CREATE INDEX approvals_by_expiry ON approvals (expires_at);
CREATE INDEX approvals_by_status ON approvals (status, id);
CREATE INDEX approvals_by_agent ON approvals (agent_id, status, id);
CREATE INDEX approvals_by_agent_name ON approvals (agent_name, status, id);

-- What each approval is about, encrypted.
CREATE TABLE approval_requests (
  id         TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL,
  sealed     BLOB NOT NULL
) STRICT;
CREATE INDEX approval_requests_by_expiry ON approval_requests (expires_at);
