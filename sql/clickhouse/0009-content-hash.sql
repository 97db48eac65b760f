-- A second hash of what the event says (core/event/content-hash.ts): with CRC-32 alone two contents in four thousand million are
-- taken for one. 0 where the event was stored before.
ALTER TABLE event_identities {on_cluster} ADD COLUMN content_hash UInt32 DEFAULT 0;
