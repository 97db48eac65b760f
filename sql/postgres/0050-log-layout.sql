-- How many partitions of a topic the shards of ids are spread over (storage/log/kafka-layout.ts). The topic may have more for
-- a while: when partitions are added, this number is changed last. The embedded log counts its rows in log_partitions.
create table log_layout (
  is_the_only_row boolean primary key default true check (is_the_only_row),
  partition_count integer not null check (partition_count > 0)
);
