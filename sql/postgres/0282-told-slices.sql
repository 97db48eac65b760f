-- What slices have added, for interfaces that are processes of their own and keep answers in memory (docs/decisions/0045-answers-beside-the-pipeline.md): written with
-- the progress, while anybody wants it, and forgotten after a minute.
create unlogged table told_slices (
  partition int not null,
  epoch bigint not null,
  from_offset bigint not null,
  to_offset bigint not null,
  rows text not null,
  told_at timestamptz not null default now(),
  primary key (partition, from_offset)
);
create table told_slices_wanted (
  is_one boolean primary key default true check (is_one),
  until timestamptz not null
);
insert into told_slices_wanted (until) values ('-infinity');
