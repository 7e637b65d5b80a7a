-- Who registered an agent or gave it a key.
ALTER TABLE agents ADD COLUMN registered_by text;
-- What a policy demands that people approve.
ALTER TABLE policies ADD COLUMN approval text;
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
-- What each approval is about, sealed.
CREATE TABLE approval_requests (
  id         text COLLATE "C" PRIMARY KEY,
  expires_at bigint NOT NULL,
  sealed     bytea NOT NULL
);
CREATE INDEX approval_requests_by_expiry ON approval_requests (expires_at);
