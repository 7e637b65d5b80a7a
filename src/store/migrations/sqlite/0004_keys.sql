-- Key slots and the keyset. Vaults from before have no vault id: their next start creates the keyset.
ALTER TABLE vault ADD COLUMN vault_id TEXT;

-- One row: all keys of the vault, sealed under the root key.
CREATE TABLE keyset (
  id           INTEGER PRIMARY KEY CHECK (id = 1),
  version      INTEGER NOT NULL,
  root_version INTEGER NOT NULL,
  sealed       BLOB    NOT NULL
) STRICT;

-- Each slot has the root key, sealed to its public key.
CREATE TABLE key_slots (
  id           TEXT    PRIMARY KEY,
  name         TEXT    NOT NULL UNIQUE,
  kind         TEXT    NOT NULL,
  parameters   TEXT    NOT NULL,
  public_key   TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  root_version INTEGER NOT NULL,
  sealed_root  BLOB    NOT NULL,
  mac          TEXT    NOT NULL
) STRICT;

-- How many values were sealed under each data key.
CREATE TABLE data_key_seals (
  key_id TEXT    PRIMARY KEY,
  seals  INTEGER NOT NULL
) STRICT;

-- The key that the agent had before a rotation; logins with it succeed until this time.
ALTER TABLE agents ADD COLUMN former_public_key TEXT;
ALTER TABLE agents ADD COLUMN former_key_until INTEGER;
