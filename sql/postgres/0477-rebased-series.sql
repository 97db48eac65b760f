-- True after a restore: the log may have events that were computed from later values, so the next value of the series only replaces this one.
alter table otlp_series add column rebase boolean not null default false;
