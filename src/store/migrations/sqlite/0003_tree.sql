-- The Merkle tree over the entries' MACs, and its signed checkpoints.

-- The roots of the complete subtrees of which the tree consists, as base64, and the digest of agents and policies; NULL
-- in the head record of an earlier version.
ALTER TABLE audit_head ADD COLUMN tree TEXT;
ALTER TABLE audit_head ADD COLUMN control TEXT;

-- The roots of complete subtrees with 2^level leaves, for the levels 8, 16, 24 …
CREATE TABLE audit_tree (
  level    INTEGER NOT NULL,
  position INTEGER NOT NULL,
  hash     TEXT    NOT NULL,
  PRIMARY KEY (level, position)
) STRICT, WITHOUT ROWID;

-- The signed notes. The key allows one root for a size of one log; an accepted roll-back begins another log.
CREATE TABLE checkpoints (
  generation INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  signed_at  INTEGER NOT NULL,
  note       TEXT    NOT NULL,
  PRIMARY KEY (generation, size)
) STRICT, WITHOUT ROWID;
