-- A connection that is being archived has a state of its own. It was recognized by the text of its reason.
alter table connections drop constraint connections_connection_state_check;
alter table connections add constraint connections_connection_state_check
  check (connection_state in ('active', 'needs_attention', 'being_archived'));
update connections set connection_state = 'being_archived'
 where connection_state = 'needs_attention' and attention_reason = 'it is being archived';

-- Failed attempts to close a void page at its provider (docs/rules/checkout.md, "Pages that stay open"). They lengthen the pause before the next.
alter table payments add column close_failures integer not null default 0;
