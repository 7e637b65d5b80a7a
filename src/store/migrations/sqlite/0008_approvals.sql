-- Who registered an agent or gave it a key.
ALTER TABLE agents ADD COLUMN registered_by TEXT;
-- What a policy demands that people approve.
ALTER TABLE policies ADD COLUMN approval TEXT;
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
-- What each approval is about, sealed.
CREATE TABLE approval_requests (
  id         TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL,
  sealed     BLOB NOT NULL
) STRICT;
CREATE INDEX approval_requests_by_expiry ON approval_requests (expires_at);
