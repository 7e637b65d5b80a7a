-- Key slots and the keyset. Vaults from before have no vault id: their next start creates the keyset.
ALTER TABLE vault ADD COLUMN vault_id text;

-- One row: all keys of the vault, sealed under the root key.
CREATE TABLE keyset (
  id           integer PRIMARY KEY CHECK (id = 1),
  version      bigint NOT NULL,
  root_version bigint NOT NULL,
  sealed       bytea  NOT NULL
);

-- Each slot has the root key, sealed to its public key.
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

-- How many values were sealed under each data key.
CREATE TABLE data_key_seals (
  key_id text COLLATE "C" PRIMARY KEY,
  seals  bigint NOT NULL
) WITH (fillfactor = 10);

-- The key that the agent had before a rotation; logins with it succeed until this time.
ALTER TABLE agents ADD COLUMN former_public_key text;
ALTER TABLE agents ADD COLUMN former_key_until bigint;
