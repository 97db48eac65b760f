-- Entries that are older than they are kept are found without reading all of them: they lie in the table in the order of their instants.
create index audit_entries_age on audit_entries using brin (created_at);
