-- The vault as it began. Times are milliseconds since 1970, but in the log, whose columns are the interface's, word for word.
-- Texts are ordered and compared byte by byte.

CREATE TABLE vault (
  id         integer PRIMARY KEY CHECK (id = 1),
  key_check  text   NOT NULL,
  created_at bigint NOT NULL,
  -- The latest time that the vault has seen, so that a clock set back extends nothing.
  seen_at    bigint NOT NULL
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

-- Whoever has its row locked has the turn. It is written with every turn: room in its page keeps it there.
CREATE TABLE audit_head (
  id    integer PRIMARY KEY CHECK (id = 1),
  seq   bigint NOT NULL,
  hmac  text COLLATE "C" NOT NULL,
  mac   text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0);

-- `epoch` is that of the turn that wrote the row: what a node lacks are the rows of later ones.
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
  name       text COLLATE "C" PRIMARY KEY,
  principal  text   NOT NULL,
  resources  text   NOT NULL,
  actions    text   NOT NULL,
  max_ttl    bigint NOT NULL,
  created_at bigint NOT NULL,
  mac        text   NOT NULL,
  epoch      bigint NOT NULL
);
CREATE INDEX policies_by_epoch ON policies (epoch);

-- What was removed, and by the turn of which epoch: an agent by its id, with its name, or a policy by its name.
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

-- What callers with an Idempotency-Key were told, as text that its MAC covers.
CREATE TABLE kept_replies (
  id          text COLLATE "C" PRIMARY KEY,
  agent_id    text   NOT NULL,
  request_mac text   NOT NULL,
  reply       text   NOT NULL,
  expires_at  bigint NOT NULL,
  mac         text   NOT NULL
);
CREATE INDEX kept_replies_by_end ON kept_replies (expires_at);

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
-- Sealed values do not become shorter.
ALTER TABLE credential_versions ALTER COLUMN sealed SET STORAGE EXTERNAL;

-- How often each credential was retrieved, as far as the lease `through_seq`: those behind it are counted when somebody asks.
CREATE TABLE access_counts (
  credential_id text COLLATE "C" PRIMARY KEY,
  count         bigint NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE access_counted (
  id          integer PRIMARY KEY CHECK (id = 1),
  through_seq bigint NOT NULL
) WITH (fillfactor = 10);

-- By the ordinal of the entry that issued it.
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

-- One row ends many leases: those issued before `seq` to the agent, for the credential, or both; '' stands for any.
CREATE TABLE revocation_marks (
  seq           bigint PRIMARY KEY,
  agent_id      text COLLATE "C" NOT NULL,
  credential_id text COLLATE "C" NOT NULL,
  revoked_at    bigint NOT NULL
);
CREATE INDEX revocation_marks_by_scope ON revocation_marks (agent_id, credential_id, seq);

-- Leases with the first revocation that reached them while they lasted. The times of marks never fall along their ordinals, so
-- that the first of each scope is enough, however many follow it.
CREATE VIEW leases_now AS
SELECT seq, id, agent_id, credential_id, agent_name, path, version, policy_name, issued_at, expires_at,
       coalesce(revoked_at, nullif(least(
         expires_at,
         (SELECT m.revoked_at FROM revocation_marks m WHERE m.agent_id = l.agent_id
           AND m.credential_id = '' AND m.seq > l.seq ORDER BY m.seq LIMIT 1),
         (SELECT m.revoked_at FROM revocation_marks m WHERE m.agent_id = l.agent_id
           AND m.credential_id = l.credential_id AND m.seq > l.seq ORDER BY m.seq LIMIT 1),
         (SELECT m.revoked_at FROM revocation_marks m WHERE m.agent_id = ''
           AND m.credential_id = l.credential_id AND m.seq > l.seq ORDER BY m.seq LIMIT 1)
       ), expires_at)) AS revoked_at
FROM leases l;
