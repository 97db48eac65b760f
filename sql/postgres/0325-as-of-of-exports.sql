-- What the file of an export has: everything that was accepted before this instant (docs/rules/exports.md, "As of"), by the clock of the environment.
alter table tasks add column as_of timestamptz;
-- When it was asked for, by the machine's clock, by which events come in: what was accepted before it is waited for. Null where the clock of an
-- environment makes the file, which goes by what came in before that was moved, and of tasks from before.
alter table tasks add column asked_at timestamptz;
