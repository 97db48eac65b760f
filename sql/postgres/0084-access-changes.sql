-- Whoever keeps in memory what a key may do is told when that changes, with the commit of the change
-- (docs/decisions/0015-revoked-at-once.md). By triggers: what a person changes by hand is told, too.
create function tell_access_change() returns trigger language plpgsql as $$
declare
  changed jsonb := to_jsonb(case when tg_op = 'DELETE' then old else new end);
begin
  perform pg_notify('access_changed', changed ->> case tg_table_name when 'tenants' then 'id' else 'tenant_id' end);
  return null;
end
$$;

-- A new key: it may have been tried before it was there.
create trigger secrets_tell_access after insert or delete on secrets
  for each row execute function tell_access_change();
-- When a key was used last is written all the time, and changes nothing.
create trigger secrets_tell_access_change after update on secrets
  for each row
  when ((old.status, old.expires_at, old.type, old.user_id, old.environment_id, old.key_hash)
    is distinct from (new.status, new.expires_at, new.type, new.user_id, new.environment_id, new.key_hash))
  execute function tell_access_change();

create trigger users_tell_access after delete on users
  for each row execute function tell_access_change();
create trigger users_tell_access_change after update on users
  for each row
  when ((old.status, old.roles, old.type) is distinct from (new.status, new.roles, new.type))
  execute function tell_access_change();

create trigger tenants_tell_access after delete on tenants
  for each row execute function tell_access_change();
create trigger tenants_tell_access_change after update on tenants
  for each row
  when ((old.status, old.suspended) is distinct from (new.status, new.suspended))
  execute function tell_access_change();

create trigger user_passwords_tell_access after insert or update or delete on user_passwords
  for each row execute function tell_access_change();
