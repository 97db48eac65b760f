/** Reads the traces of a request in Postgres: the state of every table and sequence, to show that a preview leaves nothing. */
import type { Database } from '../../storage/foundation/stores.ts';

/** Progress of the running pipeline and last use of keys, which change without the request. */
const OTHERS = ['slices', 'slice_ledger', 'log_partitions', 'log_consumers', 'secrets', 'told_slices_wanted'];

/** Sequences that only order rows. Every rolled-back transaction leaves gaps in them (docs/decisions/0037-previews.md). */
export const SEQUENCES_WITH_GAPS = ['public.system_events_sequence_seq', 'public.revenue_outbox_id_seq'];

export async function readTraces(database: Database): Promise<Record<string, string>> {
  const { rows: tables } = await database.raw<{ rows: { name: string }[] }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
  );
  const read = tables.filter(({ name }) => !OTHERS.some((other) => name.endsWith(`.${other}`)));
  const states = read.map(
    ({ name }) =>
      `select '${name}' as name, count(*) || ' ' || coalesce(md5(string_agg(t::text, ',' order by t::text)), '') as state from ${name} t`,
  );
  const sequences = `select schemaname || '.' || sequencename as name, coalesce(last_value::text, '') as state
                       from pg_sequences where schemaname = 'public'`;
  const { rows } = await database.raw<{ rows: { name: string; state: string }[] }>(
    [...states, sequences].join(' union all '),
  );
  return Object.fromEntries(rows.map(({ name, state }) => [name, state]));
}

/** Number of locks that transactions hold on tables or rows of this database, and on keys of advisory locks. */
export async function countHeldLocks(database: Database): Promise<number> {
  const { rows } = await database.raw<{ rows: { count: number }[] }>(
    `select count(*)::int as count from pg_locks
     where pid <> pg_backend_pid() and locktype in ('advisory', 'tuple', 'transactionid') and granted
       and (database is null or database = (select oid from pg_database where datname = current_database()))`,
  );
  return rows[0]!.count;
}

/** Names of the tables that differ between two states. */
export function listChanged(before: Record<string, string>, after: Record<string, string>): string[] {
  return Object.keys(after).filter((name) => before[name] !== after[name]);
}
