-- What has gone wrong is told while the task is tried again, and not only when it has failed (docs/rules/tasks.md).
create function tell_error_of_run() returns trigger language plpgsql as $$
begin
  update tasks
     set error_summary = coalesce(new.error ->> 'message', 'it has not succeeded yet'), updated_at = new.updated_at
   where tenant_id = new.tenant_id and environment_id = new.environment_id and id = new.entity_id
     and workflow_id = new.id and task_status in ('PENDING', 'PROCESSING');
  return null;
end $$;
create trigger workflow_runs_tell_task after update of error on workflow_runs
  for each row when (new.entity = 'task' and new.workflow_status = 'Running' and new.error is not null)
  execute function tell_error_of_run();
