-- The distinct values of COUNT_UNIQUE as a plain array that merges as a set. A row of a meter that has none pays nothing for
-- it, where an aggregate state of nothing cost a third of the insert. States cannot be turned back into values: who has such
-- meters from before rebuilds them with `npm run audit -- --repair`.
ALTER TABLE usage_buckets {on_cluster} ADD COLUMN unique_values SimpleAggregateFunction(groupUniqArrayArray, Array(String)) AFTER latest;

ALTER TABLE usage_buckets {on_cluster} DROP COLUMN uniques;
