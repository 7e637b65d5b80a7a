-- The initial schema. Times are milliseconds since 1970, except in audit_entries: its columns are those of the HTTP
-- interface. Text is ordered and compared byte by byte.

CREATE TABLE vault (
  id              integer PRIMARY KEY CHECK (id = 1),
  key_check       text   NOT NULL,
  created_at      bigint NOT NULL,
  -- The latest time that the vault has recorded: a clock that is set back does not extend a lease or a session.
  high_water_time bigint NOT NULL
);

CREATE TABLE audit_entries (
  seq         bigint PRIMARY KEY CHECK (seq > 0),
  id          text COLLATE "C" NOT NULL,
  timestamp   text COLLATE "C" NOT NULL,
  event_type  text COLLATE "C" NOT NULL,
  agent_name  text COLLATE "C" NOT NULL,
  resource    text COLLATE "C" NOT NULL,
  action      text COLLATE "C" NOT NULL,
  result      text COLLATE "C" NOT NULL,
  policy_name text COLLATE "C",
  lease_id    text COLLATE "C",
  reason      text COLLATE "C",
  request_id  text COLLATE "C",
  remote_addr text COLLATE "C",
  hmac        text COLLATE "C" NOT NULL
);

-- The lock of this row serializes the transactions of all nodes. Every batch updates it; the fill factor keeps updates
-- in its page.
CREATE TABLE audit_head (
  id    integer PRIMARY KEY CHECK (id = 1),
  seq   bigint NOT NULL,
  hmac  text COLLATE "C" NOT NULL,
  mac   text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0);

-- `epoch` is that of the batch that wrote the row; a node reads the rows of later epochs to catch up.
CREATE TABLE agents (
  id            text COLLATE "C" PRIMARY KEY,
  name          text COLLATE "C" NOT NULL,
  description   text   NOT NULL,
  public_key    text   NOT NULL,
  registered_at bigint NOT NULL,
  mac           text   NOT NULL,
  epoch         bigint NOT NULL
);
CREATE UNIQUE INDEX agents_by_name ON agents (lower(name));
CREATE INDEX agents_by_epoch ON agents (epoch);

CREATE TABLE policies (
  name            text COLLATE "C" PRIMARY KEY,
  principal       text   NOT NULL,
  resources       text   NOT NULL,
  actions         text   NOT NULL,
  max_ttl_seconds bigint NOT NULL,
  created_at      bigint NOT NULL,
  mac             text   NOT NULL,
  epoch           bigint NOT NULL
);
CREATE INDEX policies_by_epoch ON policies (epoch);

-- Deleted agents (id and name) and policies (name, with an empty agent_id), with the epoch of the batch that deleted
-- them.
CREATE TABLE control_removals (
  epoch    bigint NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  name     text COLLATE "C" NOT NULL,
  PRIMARY KEY (epoch, agent_id, name)
);

CREATE TABLE sessions (
  token_hash text COLLATE "C" PRIMARY KEY,
  agent_id   text COLLATE "C" NOT NULL,
  issued_at  bigint NOT NULL,
  expires_at bigint NOT NULL,
  mac        text   NOT NULL
);
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE spent_challenges (
  id         text COLLATE "C" PRIMARY KEY,
  expires_at bigint NOT NULL
);
CREATE INDEX spent_challenges_by_end ON spent_challenges (expires_at);

-- Responses to requests with an Idempotency-Key, as text that the MAC covers.
CREATE TABLE idempotency_records (
  id          text COLLATE "C" PRIMARY KEY,
  agent_id    text   NOT NULL,
  request_mac text   NOT NULL,
  reply       text   NOT NULL,
  expires_at  bigint NOT NULL,
  mac         text   NOT NULL
);
CREATE INDEX idempotency_records_by_end ON idempotency_records (expires_at);

CREATE TABLE credentials (
  id          text COLLATE "C" NOT NULL UNIQUE,
  path        text COLLATE "C" PRIMARY KEY,
  type        text COLLATE "C" NOT NULL,
  description text   NOT NULL,
  created_at  bigint NOT NULL,
  updated_at  bigint NOT NULL,
  version     bigint NOT NULL,
  mac         text   NOT NULL
);

CREATE TABLE credential_versions (
  credential_id text COLLATE "C" NOT NULL,
  version       bigint NOT NULL,
  type          text   NOT NULL,
  created_at    bigint NOT NULL,
  sealed        bytea  NOT NULL,
  PRIMARY KEY (credential_id, version)
);
-- Encrypted values do not compress.
ALTER TABLE credential_versions ALTER COLUMN sealed SET STORAGE EXTERNAL;

-- Retrievals of each credential up to the lease `through_seq` of access_count_progress; a query adds the later leases.
CREATE TABLE access_counts (
  credential_id text COLLATE "C" PRIMARY KEY,
  count         bigint NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE access_count_progress (
  id          integer PRIMARY KEY CHECK (id = 1),
  through_seq bigint NOT NULL
) WITH (fillfactor = 10);

-- `seq` is the sequence number of the audit entry that issued the lease.
CREATE TABLE leases (
  seq           bigint PRIMARY KEY,
  id            text COLLATE "C" NOT NULL UNIQUE,
  agent_id      text COLLATE "C" NOT NULL,
  credential_id text COLLATE "C" NOT NULL,
  agent_name    text COLLATE "C" NOT NULL,
  path          text COLLATE "C" NOT NULL,
  version       bigint NOT NULL,
  policy_name   text   NOT NULL,
  issued_at     bigint NOT NULL,
  expires_at    bigint NOT NULL,
  revoked_at    bigint
);
CREATE INDEX leases_by_agent ON leases (agent_name, seq);
CREATE INDEX leases_by_end ON leases (expires_at);

-- One row revokes every lease that was issued before `seq` to the agent, for the credential, or both; '' means any.
CREATE TABLE bulk_revocations (
  seq           bigint PRIMARY KEY,
  agent_id      text COLLATE "C" NOT NULL,
  credential_id text COLLATE "C" NOT NULL,
  revoked_at    bigint NOT NULL
);
CREATE INDEX bulk_revocations_by_scope ON bulk_revocations (agent_id, credential_id, seq);

-- Leases with the first revocation that applied while they were active. revoked_at never decreases along seq, so the
-- first bulk revocation of each scope decides.
CREATE VIEW effective_leases AS
SELECT seq, id, agent_id, credential_id, agent_name, path, version, policy_name, issued_at, expires_at,
       coalesce(revoked_at, nullif(least(
         expires_at,
         (SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = l.agent_id
           AND b.credential_id = '' AND b.seq > l.seq ORDER BY b.seq LIMIT 1),
         (SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = l.agent_id
           AND b.credential_id = l.credential_id AND b.seq > l.seq ORDER BY b.seq LIMIT 1),
         (SELECT b.revoked_at FROM bulk_revocations b WHERE b.agent_id = ''
           AND b.credential_id = l.credential_id AND b.seq > l.seq ORDER BY b.seq LIMIT 1)
       ), expires_at)) AS revoked_at
FROM leases l;
