-- The scheduler deletes expired sessions of all environments by one statement.
drop index oauth_sessions_expired;
create index oauth_sessions_expired on oauth_sessions (expires_at);

-- The metrics count failed events of all environments at every scrape.
create index provider_events_failed on provider_events (id) where event_state = 'failed';
