-- When a try last began to read the file, by the machine: a file of an import that has ended is kept for a week from then, whatever the age of its pieces.
alter table import_files add column used_at timestamptz not null default now();
