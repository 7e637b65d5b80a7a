-- The people who run the vault. Their sessions are renewed up to `ends_at`.
CREATE TABLE operators (
  id                TEXT    PRIMARY KEY,
  name              TEXT    NOT NULL,
  description       TEXT    NOT NULL,
  roles             TEXT    NOT NULL,
  public_key        TEXT    NOT NULL,
  added_at          INTEGER NOT NULL,
  sessions_ended_at INTEGER,
  mac               TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX operators_by_name ON operators (lower(name));
ALTER TABLE sessions ADD COLUMN ends_at INTEGER;
