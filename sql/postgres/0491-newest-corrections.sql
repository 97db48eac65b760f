-- The list of all corrections of an environment, newest first (GET /events/corrections).
create index event_corrections_newest on event_corrections (tenant_id, environment_id, requested_at, id);
