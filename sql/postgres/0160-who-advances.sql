-- Which worker advances a clock, where none but it ever has in this advance; empty where several have, null before the first.
alter table test_clocks add column worker text;
