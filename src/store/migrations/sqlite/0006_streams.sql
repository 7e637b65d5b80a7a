-- How far each log stream has sent the log: the position is in the database, so that it belongs to this log after a
-- restart, a failover, a migration or a restored backup.
CREATE TABLE log_streams (
  name TEXT    PRIMARY KEY,
  seq  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
