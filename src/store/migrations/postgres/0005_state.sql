-- The state that answers to the log: the row that an entry made, changed or removed, and its MAC from then on, or
-- 'removed'. WHY the state in the index: the newest one of a subject is found without reading the entry.
ALTER TABLE audit_entries ADD COLUMN subject text COLLATE "C", ADD COLUMN state text COLLATE "C";
CREATE INDEX audit_entries_by_subject ON audit_entries (subject, seq, state) WHERE subject IS NOT NULL;
