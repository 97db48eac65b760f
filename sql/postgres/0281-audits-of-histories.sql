-- Histories of grants that are kept in memory are compared, too. What a process without the audit's metrics has found is told by one that has them: once.
alter table running_audits
  add column histories int not null default 0,
  add column is_told boolean not null default true;
create index running_audits_untold on running_audits (checked_at) where not is_told;
