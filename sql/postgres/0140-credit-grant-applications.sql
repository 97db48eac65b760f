-- Each time that a grant gives its credits to a subscription is a row, made before it is due. There is one for a grant, subscription and
-- period, whoever makes it twice; what an add-on gives is counted by how the subscription has it, for it may have it several times.
create table credit_grant_applications (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  credit_grant_id text not null references credit_grants (id),
  subscription_id text not null references subscriptions (id),
  addon_association_id text,
  scheduled_for timestamptz not null,
  applied_at timestamptz,
  period_start timestamptz not null,
  period_end timestamptz,
  application_status text not null default 'pending',
  credits numeric not null,
  application_reason text not null,
  subscription_status_at_application text,
  retry_count integer not null default 0,
  failure_reason text,
  metadata jsonb,
  idempotency_key text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  check (credits >= 0),
  check ((application_status = 'applied') = (applied_at is not null))
);
create unique index credit_grant_applications_period on credit_grant_applications
  (tenant_id, environment_id, subscription_id, credit_grant_id, coalesce(addon_association_id, ''), period_start);
-- What is given once is not given again when the subscription comes back to its plan.
create unique index credit_grant_applications_once on credit_grant_applications
  (tenant_id, environment_id, subscription_id, credit_grant_id, coalesce(addon_association_id, ''))
  where application_reason = 'onetime_credit_grant' and application_status <> 'cancelled';
-- One is ahead at a time: the next is made when it is applied.
create unique index credit_grant_applications_ahead on credit_grant_applications
  (tenant_id, environment_id, subscription_id, credit_grant_id, coalesce(addon_association_id, ''))
  where application_status in ('pending', 'failed');
create unique index credit_grant_applications_idempotency_key on credit_grant_applications
  (tenant_id, environment_id, idempotency_key);
create index credit_grant_applications_due on credit_grant_applications (scheduled_for)
  where application_status in ('pending', 'failed');
create index credit_grant_applications_next on credit_grant_applications (tenant_id, environment_id, scheduled_for)
  where application_status in ('pending', 'failed');
create index credit_grant_applications_grant on credit_grant_applications (tenant_id, environment_id, credit_grant_id)
  where application_status in ('pending', 'failed');

-- However a subscription ends, it is given nothing more; and what waited for it to become active waits no longer. By a trigger:
-- subscriptions end in many ways, and each of them takes this with it.
create function credit_grants_follow_subscription() returns trigger language plpgsql as $$
begin
  if new.subscription_status = 'cancelled' then
    update credit_grant_applications
       set application_status = 'cancelled', failure_reason = 'the subscription is cancelled',
           subscription_status_at_application = new.subscription_status, updated_at = new.updated_at
     where tenant_id = new.tenant_id and environment_id = new.environment_id and subscription_id = new.id
       and application_status in ('pending', 'failed');
  elsif old.subscription_status not in ('active', 'trialing') and new.subscription_status in ('active', 'trialing') then
    update credit_grant_applications
       set scheduled_for = least(scheduled_for, greatest(period_start, new.updated_at)), updated_at = new.updated_at
     where tenant_id = new.tenant_id and environment_id = new.environment_id and subscription_id = new.id
       and application_status in ('pending', 'failed');
  end if;
  return null;
end $$;
create trigger subscriptions_credit_grants after update of subscription_status on subscriptions
  for each row when (old.subscription_status is distinct from new.subscription_status)
  execute function credit_grants_follow_subscription();

-- So does what leaves a subscription with its plan or an add-on, and what ends by itself.
create function credit_grants_follow_plan() returns trigger language plpgsql as $$
begin
  update credit_grant_applications a
     set application_status = 'cancelled', failure_reason = 'the subscription has another plan', updated_at = new.updated_at
    from credit_grants g
   where a.tenant_id = new.tenant_id and a.environment_id = new.environment_id and a.subscription_id = new.id
     and a.application_status in ('pending', 'failed')
     and g.id = a.credit_grant_id and g.tenant_id = a.tenant_id and g.environment_id = a.environment_id
     and g.plan_id = old.plan_id;
  return null;
end $$;
create trigger subscriptions_credit_grants_of_plan after update of plan_id on subscriptions
  for each row when (old.plan_id is distinct from new.plan_id)
  execute function credit_grants_follow_plan();

create function credit_grants_follow_addon() returns trigger language plpgsql as $$
begin
  update credit_grant_applications
     set application_status = 'cancelled', failure_reason = 'the subscription does not have the add-on any more',
         updated_at = new.updated_at
   where tenant_id = new.tenant_id and environment_id = new.environment_id and subscription_id = new.entity_id
     and addon_association_id = new.id and application_status in ('pending', 'failed') and period_start >= new.end_date;
  return null;
end $$;
create trigger addon_associations_credit_grants after update of end_date on addon_associations
  for each row when (new.end_date is not null and old.end_date is distinct from new.end_date)
  execute function credit_grants_follow_addon();

-- A template is not used any more; one of a subscription ends, and what would reach beyond its end does not come.
create function credit_grants_end() returns trigger language plpgsql as $$
begin
  update credit_grant_applications
     set application_status = 'cancelled', failure_reason = 'the grant has ended', updated_at = new.updated_at
   where tenant_id = new.tenant_id and environment_id = new.environment_id and credit_grant_id = new.id
     and application_status in ('pending', 'failed')
     and case when new.scope = 'SUBSCRIPTION'
              then period_start >= new.end_date
                or (application_reason = 'recurring_credit_grant' and period_end > new.end_date)
              else new.status <> 'published' end;
  return null;
end $$;
create trigger credit_grants_end after update of status, end_date on credit_grants
  for each row when (old.status is distinct from new.status or old.end_date is distinct from new.end_date)
  execute function credit_grants_end();
