-- Whether a person has named the tenant. The name that it has otherwise stands on no invoice (docs/rules/documents.md, "The seller").
alter table tenants add column is_named boolean not null default true;
update tenants set is_named = false where name = 'Default';
