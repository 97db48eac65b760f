-- Whether the advance before the last one failed at an instant to which it had moved: what is looked at there, and is due behind where the
-- clock stands alone, is looked at once more.
alter table test_clocks add column is_at_failure boolean not null default false;
