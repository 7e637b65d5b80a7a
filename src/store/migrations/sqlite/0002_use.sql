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
           ORDER BY b.seq LIMIT 1), expires_at)
       ), expires_at)) AS revoked_at, token_hash
FROM leases l;
