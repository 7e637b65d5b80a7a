-- The vault as it began. Times are milliseconds since 1970, but in the log, whose columns are the interface's, word for word.

CREATE TABLE vault (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  key_check  TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  -- The latest time that the vault has seen, so that a clock set back before a start extends nothing.
  seen_at    INTEGER NOT NULL
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
  -- Accesses up to here are in `access_counts`.
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
  name       TEXT    PRIMARY KEY,
  principal  TEXT    NOT NULL,
  resources  TEXT    NOT NULL,
  actions    TEXT    NOT NULL,
  max_ttl    INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  mac        TEXT    NOT NULL
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

-- What a POST with an Idempotency-Key was answered, for a day. By row number, so that the table grows at its end: ids are MACs, and
-- lie at random.
CREATE TABLE kept_replies (
  id          TEXT    PRIMARY KEY,
  agent_id    TEXT    NOT NULL,
  request_mac TEXT    NOT NULL,
  reply       TEXT    NOT NULL,
  expires_at  INTEGER NOT NULL,
  mac         TEXT    NOT NULL
) STRICT;
CREATE INDEX kept_replies_by_end ON kept_replies (expires_at);

-- By path. The newest version stands in the row itself where it is small, so that a retrieval is one look; it has the row's
-- own version and type, and was stored at `newest_at`. Else it is in `credential_versions`, as all older ones are.
CREATE TABLE credentials (
  id            TEXT    NOT NULL UNIQUE,
  path          TEXT    PRIMARY KEY,
  type          TEXT    NOT NULL,
  description   TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  version       INTEGER NOT NULL,
  mac           TEXT    NOT NULL,
  number        INTEGER NOT NULL,
  newest_at     INTEGER,
  newest_sealed BLOB
) STRICT, WITHOUT ROWID;

-- How often the credential of that number was retrieved, as far as the entry `through_seq`. Small rows close together: where a
-- million credentials are asked for, dozens of counts are written with one page. No number is given twice, so that what is
-- counted late is never another's.
CREATE TABLE access_counts (
  number      INTEGER PRIMARY KEY AUTOINCREMENT,
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

-- By the ordinal of the entry that issued it, so that the table grows at its end.
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
-- No index by path or agent: it would touch a page of its own for nearly every retrieval. Looks by path alone are rare, and go
-- through all; those by agent go through the spans of 4,096 ordinals in which it has any.
CREATE TABLE lease_spans (
  agent_name TEXT    NOT NULL,
  span       INTEGER NOT NULL,
  PRIMARY KEY (agent_name, span)
) STRICT, WITHOUT ROWID;

-- One row ends many leases: those issued before `seq` to the agent, for the credential, or both; '' stands for any.
CREATE TABLE revocation_marks (
  seq           INTEGER PRIMARY KEY,
  agent_id      TEXT    NOT NULL,
  credential_id TEXT    NOT NULL,
  revoked_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX revocation_marks_by_scope ON revocation_marks (agent_id, credential_id, seq);

-- Leases with the first revocation that reached them while they lasted. The times of marks never fall along their ordinals, so
-- that the first of each scope is enough, however many follow it.
CREATE VIEW leases_now AS
SELECT seq, id, agent_id, credential_id, agent_name, path, version, policy_name, issued_at, expires_at,
       coalesce(revoked_at, nullif(min(
         expires_at,
         coalesce((SELECT m.revoked_at FROM revocation_marks m WHERE m.agent_id = l.agent_id
           AND m.credential_id = '' AND m.seq > l.seq ORDER BY m.seq LIMIT 1), expires_at),
         coalesce((SELECT m.revoked_at FROM revocation_marks m WHERE m.agent_id = l.agent_id
           AND m.credential_id = l.credential_id AND m.seq > l.seq ORDER BY m.seq LIMIT 1), expires_at),
         coalesce((SELECT m.revoked_at FROM revocation_marks m WHERE m.agent_id = ''
           AND m.credential_id = l.credential_id AND m.seq > l.seq ORDER BY m.seq LIMIT 1), expires_at)
       ), expires_at)) AS revoked_at
FROM leases l;
