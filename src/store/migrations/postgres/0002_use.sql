-- Brokered use: where credentials may be used, leases for uses only, and the fields of a use in the log.

ALTER TABLE audit_entries
  ADD COLUMN method      text COLLATE "C",
  ADD COLUMN host        text COLLATE "C",
  ADD COLUMN target_path text COLLATE "C",
  ADD COLUMN status      bigint,
  ADD COLUMN bytes_in    bigint,
  ADD COLUMN bytes_out   bigint,
  ADD COLUMN redactions  bigint,
  ADD COLUMN ended       text COLLATE "C";

-- Only the row of the credential with that id counts. Targets and placement are JSON, as text that the MAC covers.
CREATE TABLE usages (
  path          text COLLATE "C" PRIMARY KEY,
  credential_id text COLLATE "C" NOT NULL,
  service       text,
  targets       text   NOT NULL,
  placement     text   NOT NULL,
  updated_at    bigint NOT NULL,
  mac           text   NOT NULL
);

-- JSON. The text null, or NULL in an older row, without limits.
ALTER TABLE policies ADD COLUMN limits text;

-- 'retrieve' or 'use'.
ALTER TABLE leases ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT 'retrieve', ADD COLUMN token_hash text COLLATE "C";
CREATE UNIQUE INDEX leases_by_token ON leases (token_hash) WHERE token_hash IS NOT NULL;
-- '' means leases of any kind.
ALTER TABLE bulk_revocations ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT '';

DROP VIEW effective_leases;
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
  path          text COLLATE "C" NOT NULL,
  credential_id text COLLATE "C" NOT NULL,
  version       bigint NOT NULL,
  kind          text COLLATE "C" NOT NULL,
  agent_name    text COLLATE "C" NOT NULL,
  first_at      bigint NOT NULL,
  last_at       bigint NOT NULL,
  times         bigint NOT NULL,
  PRIMARY KEY (path, credential_id, version, kind, agent_name)
);
CREATE INDEX exposures_by_agent ON exposures (agent_name, path, credential_id, version, kind);
CREATE TABLE exposure_progress (
  id          bigint PRIMARY KEY,
  through_seq bigint NOT NULL
);

-- Sessions that began at this time or earlier have ended.
ALTER TABLE agents ADD COLUMN sessions_ended_at bigint;
