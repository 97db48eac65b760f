-- That events of an environment are corrected, under a name of its own: after it every charge of a subscription is measured again, which is
-- another plan (docs/decisions/0032-resting-plans.md). Nobody else hears of it.
create function note_corrections() returns trigger language plpgsql as $$
begin
  insert into record_changes (xid, id)
  select distinct pg_current_xact_id(), r.environment_id || '/corrections' from news as r
  on conflict do nothing;
  return null;
end $$;
create trigger event_corrections_note_insert after insert on event_corrections referencing new table as news
  for each statement execute function note_corrections();
create trigger event_corrections_note_update after update on event_corrections referencing new table as news
  for each statement execute function note_corrections();
