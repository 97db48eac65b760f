-- The scheduler deletes expired sessions of all environments by one statement.
drop index oauth_sessions_expired;
create index oauth_sessions_expired on oauth_sessions (expires_at);
