-- The Merkle tree over the entries' MACs, and its signed checkpoints.

-- The roots of the complete subtrees of which the tree consists, as base64, and the digest of agents and policies; NULL
-- in the head record of an earlier version.
ALTER TABLE audit_head ADD COLUMN tree text COLLATE "C", ADD COLUMN control text COLLATE "C";

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
