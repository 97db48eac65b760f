-- Bytes of the embedded log in files (storage/log/segment-files.ts): one row per file. A file is made after its row and
-- removed after it, and no row of a record can be without the row of its file, so a file that has no row is nobody's.
create table log_segments (
  segment    bigint generated always as identity primary key,
  created_at timestamptz not null default now()
);

alter table log_records
  alter column body drop not null,
  add column segment  bigint references log_segments,
  add column position bigint,
  add column length   integer,
  add column crc32    bigint,
  add constraint body_or_place check (
    (body is null) = (segment is not null)
    and (segment is null) = (position is null)
    and (segment is null) = (length is null)
    and (segment is null) = (crc32 is null)
  );
create index log_records_by_segment on log_records (segment) where segment is not null;
