-- An operator may have passkeys or an identity at a provider, and no key.
CREATE TABLE operators_with_sign_in (
  id                TEXT    PRIMARY KEY,
  name              TEXT    NOT NULL,
  description       TEXT    NOT NULL,
  roles             TEXT    NOT NULL,
  public_key        TEXT,
  passkeys          TEXT,
  identity          TEXT,
  added_at          INTEGER NOT NULL,
  sessions_ended_at INTEGER,
  mac               TEXT    NOT NULL
) STRICT;
INSERT INTO operators_with_sign_in (id, name, description, roles, public_key, added_at, sessions_ended_at, mac)
  SELECT id, name, description, roles, public_key, added_at, sessions_ended_at, mac FROM operators;
DROP TABLE operators;
ALTER TABLE operators_with_sign_in RENAME TO operators;
CREATE UNIQUE INDEX operators_by_name ON operators (lower(name));
