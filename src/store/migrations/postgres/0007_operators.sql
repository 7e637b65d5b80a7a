-- The people who run the vault. Their sessions are renewed up to `ends_at`.
CREATE TABLE operators (
  id                text COLLATE "C" PRIMARY KEY,
  name              text COLLATE "C" NOT NULL,
  description       text   NOT NULL,
  roles             text   NOT NULL,
  public_key        text   NOT NULL,
  added_at          bigint NOT NULL,
  sessions_ended_at bigint,
  mac               text   NOT NULL,
  epoch             bigint NOT NULL
);
CREATE UNIQUE INDEX operators_by_name ON operators (lower(name));
CREATE INDEX operators_by_epoch ON operators (epoch);
ALTER TABLE sessions ADD COLUMN ends_at bigint;
