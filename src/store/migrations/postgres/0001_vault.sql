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
  seq         bigint CHECK (seq > 0),
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
  hmac        text COLLATE "C" NOT NULL,
  -- The fields of a use.
  method      text COLLATE "C",
  host        text COLLATE "C",
  target_path text COLLATE "C",
  status      bigint,
  bytes_in    bigint,
  bytes_out   bigint,
  redactions  bigint,
  ended       text COLLATE "C",
  -- The row that the entry made, changed or removed, and its MAC from then on, or 'removed'.
  subject     text COLLATE "C",
  state       text COLLATE "C",
  -- For lists with a filter: the columns that filters compare, in the order of the log.
  PRIMARY KEY (seq) INCLUDE (agent_name, event_type, action, result, resource)
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
  level    bigint NOT NULL,
  position bigint NOT NULL,
  hash     text COLLATE "C" NOT NULL,
  PRIMARY KEY (level, position)
);

-- The signed notes. The key allows one root for a size of one log; an accepted roll-back begins another log.
CREATE TABLE checkpoints (
  generation bigint NOT NULL,
  size       bigint NOT NULL,
  signed_at  bigint NOT NULL,
  note       text   NOT NULL,
  PRIMARY KEY (generation, size)
);

-- How far each log stream has sent the log: the position is in the database, so that it belongs to this log after a
-- restart, a failover or a restored backup.
CREATE TABLE log_streams (
  name text   COLLATE "C" PRIMARY KEY,
  seq  bigint NOT NULL
);

-- One row: all keys of the vault, encrypted under the root key.
CREATE TABLE keyset (
  id           integer PRIMARY KEY CHECK (id = 1),
  version      bigint NOT NULL,
  root_version bigint NOT NULL,
  sealed       bytea  NOT NULL
);

-- Each slot has the root key, encrypted to its public key.
CREATE TABLE key_slots (
  id           text COLLATE "C" PRIMARY KEY,
  name         text COLLATE "C" NOT NULL UNIQUE,
  kind         text   NOT NULL,
  parameters   text   NOT NULL,
  public_key   text   NOT NULL,
  created_at   bigint NOT NULL,
  root_version bigint NOT NULL,
  sealed_root  bytea  NOT NULL,
  mac          text   NOT NULL
);

-- How many values were encrypted under each data key.
CREATE TABLE data_key_seals (
  key_id text COLLATE "C" PRIMARY KEY,
  seals  bigint NOT NULL
) WITH (fillfactor = 10);

-- `epoch` is that of the batch that wrote the row; a node reads the rows of later epochs to catch up.
CREATE TABLE agents (
  id                text COLLATE "C" PRIMARY KEY,
  name              text COLLATE "C" NOT NULL,
  description       text   NOT NULL,
  public_key        text   NOT NULL,
  registered_at     bigint NOT NULL,
  mac               text   NOT NULL,
  epoch             bigint NOT NULL,
  -- Sessions that began at this time or earlier have ended.
  sessions_ended_at bigint,
  -- The key that the agent had before a rotation; logins with it succeed until `former_key_until`.
  former_public_key text,
  former_key_until  bigint,
  -- Who registered the agent or gave it a key.
  registered_by     text
);
CREATE UNIQUE INDEX agents_by_name ON agents (lower(name));
CREATE INDEX agents_by_epoch ON agents (epoch);

-- The people who run the vault: with a key, passkeys, or an identity at a provider.
CREATE TABLE operators (
  id                text COLLATE "C" PRIMARY KEY,
  name              text COLLATE "C" NOT NULL,
  description       text   NOT NULL,
  roles             text   NOT NULL,
  public_key        text,
  added_at          bigint NOT NULL,
  sessions_ended_at bigint,
  mac               text   NOT NULL,
  epoch             bigint NOT NULL,
  passkeys          text,
  identity          text
);
CREATE UNIQUE INDEX operators_by_name ON operators (lower(name));
CREATE INDEX operators_by_epoch ON operators (epoch);

CREATE TABLE policies (
  name            text COLLATE "C" PRIMARY KEY,
  principal       text   NOT NULL,
  resources       text   NOT NULL,
  actions         text   NOT NULL,
  max_ttl_seconds bigint NOT NULL,
  created_at      bigint NOT NULL,
  mac             text   NOT NULL,
  epoch           bigint NOT NULL,
  -- JSON, the text null without limits or approval.
  limits          text,
  approval        text
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
  token_hash text COLLATE "C" PRIMARY KEY,
  agent_id   text COLLATE "C" NOT NULL,
  issued_at  bigint NOT NULL,
  expires_at bigint NOT NULL,
  mac        text   NOT NULL,
  -- Sessions of operators are renewed up to this time.
  ends_at    bigint
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

-- `seq` is the sequence number of the audit entry that issued the lease. `kind` is 'retrieve' or 'use'.
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
  revoked_at    bigint,
  kind          text COLLATE "C" NOT NULL DEFAULT 'retrieve',
  token_hash    text COLLATE "C"
);
CREATE UNIQUE INDEX leases_by_token ON leases (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX leases_by_agent ON leases (agent_name, seq);
CREATE INDEX leases_by_end ON leases (expires_at);

-- One row revokes every lease that was issued before `seq` to the agent, for the credential, or both, and of the kind;
-- '' means any.
CREATE TABLE bulk_revocations (
  seq           bigint PRIMARY KEY,
  agent_id      text COLLATE "C" NOT NULL,
  credential_id text COLLATE "C" NOT NULL,
  revoked_at    bigint NOT NULL,
  kind          text COLLATE "C" NOT NULL DEFAULT ''
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

-- What people are asked to allow, and what they answered.
CREATE TABLE approvals (
  id            text COLLATE "C" PRIMARY KEY,
  nonce         text NOT NULL,
  agent_id      text NOT NULL,
  agent_name    text NOT NULL,
  token_hash    text NOT NULL,
  action        text NOT NULL,
  path          text NOT NULL,
  key           text COLLATE "C" NOT NULL,
  basis         text NOT NULL,
  terms         text NOT NULL,
  method        text,
  host          text,
  target_path   text,
  purpose       text,
  status        text NOT NULL,
  requested_at  bigint NOT NULL,
  answer_by     bigint NOT NULL,
  approvers     text NOT NULL,
  ended_by      text,
  ended_at      bigint,
  reason        text,
  uses_left     bigint,
  grant_ends_at bigint,
  expires_at    bigint NOT NULL,
  mac           text NOT NULL
);
CREATE INDEX approvals_by_key ON approvals (key, id);
CREATE INDEX approvals_by_expiry ON approvals (expires_at);
CREATE INDEX approvals_by_status ON approvals (status, id);
CREATE INDEX approvals_by_agent ON approvals (agent_id, status, id);
CREATE INDEX approvals_by_agent_name ON approvals (agent_name, status, id);

-- What each approval is about, encrypted.
CREATE TABLE approval_requests (
  id         text COLLATE "C" PRIMARY KEY,
  expires_at bigint NOT NULL,
  sealed     bytea NOT NULL
);
CREATE INDEX approval_requests_by_expiry ON approval_requests (expires_at);
