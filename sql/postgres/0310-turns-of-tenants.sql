-- When the last turn of a tenant began among those who wait for the places of files (storage/job-turns.ts, docs/decisions/0044-turns-of-files.md).
-- Finished jobs leave no row in the queue, and whose turn is next has to be decided by the database, whichever process asks. A row for each
-- tenant that ever had a file of that kind written or read; `queue` is that of its jobs.
create table job_turns (
  task    text not null,
  queue   text not null,
  turn_at timestamptz not null,
  primary key (task, queue)
);
