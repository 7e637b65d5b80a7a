-- Brokered use: where credentials may be used, leases for uses only, and the fields of a use in the log.

ALTER TABLE audit_entries ADD COLUMN method TEXT;
ALTER TABLE audit_entries ADD COLUMN host TEXT;
ALTER TABLE audit_entries ADD COLUMN target_path TEXT;
ALTER TABLE audit_entries ADD COLUMN status INTEGER;
ALTER TABLE audit_entries ADD COLUMN bytes_in INTEGER;
ALTER TABLE audit_entries ADD COLUMN bytes_out INTEGER;
ALTER TABLE audit_entries ADD COLUMN redactions INTEGER;
ALTER TABLE audit_entries ADD COLUMN ended TEXT;

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

-- JSON. The text null, or NULL in an older row, without limits.
ALTER TABLE policies ADD COLUMN limits TEXT;

-- 'retrieve' or 'use'.
ALTER TABLE leases ADD COLUMN kind TEXT NOT NULL DEFAULT 'retrieve';
ALTER TABLE leases ADD COLUMN token_hash TEXT;
CREATE UNIQUE INDEX leases_by_token ON leases (token_hash) WHERE token_hash IS NOT NULL;
-- '' means leases of any kind.
ALTER TABLE bulk_revocations ADD COLUMN kind TEXT NOT NULL DEFAULT '';

DROP VIEW effective_leases;
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

-- Sessions that began at this time or earlier have ended.
ALTER TABLE agents ADD COLUMN sessions_ended_at INTEGER;
