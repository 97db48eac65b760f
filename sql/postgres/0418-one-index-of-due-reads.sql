-- The sweep of due reads goes by connection and uses integration_mappings_pulled; no statement reads by the time alone.
drop index integration_mappings_due;
