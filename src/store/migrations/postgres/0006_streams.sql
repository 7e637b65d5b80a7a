-- How far each log stream has sent the log: the position is in the database, so that it belongs to this log after a
-- restart, a failover, a migration or a restored backup.
CREATE TABLE log_streams (
  name text   COLLATE "C" PRIMARY KEY,
  seq  bigint NOT NULL
);
