-- Lists of wallets by their pairs, and by whether alerts are switched on.
create index wallets_metadata on wallets using gin (metadata jsonb_path_ops);
create index wallets_alert_settings on wallets using gin (alert_settings jsonb_path_ops);
