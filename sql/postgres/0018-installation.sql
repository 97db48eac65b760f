-- Which installation these stores are: what is kept on a disk beside them is of no use with others.
create table installation (
  id uuid primary key default gen_random_uuid()
);
insert into installation default values;
