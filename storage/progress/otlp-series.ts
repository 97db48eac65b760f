/** Table `otlp_series`: the last value of each cumulative series (docs/decisions/0032-cumulative-metrics.md). */
import type { Scope } from '../../core/foundation/scope.ts';
import { DAY_MS } from '../../core/foundation/time/durations.ts';
import { SERIES_RETENTION_DAYS, type SeriesState } from '../../core/metering/event/cumulative.ts';
import type { Database } from '../foundation/stores.ts';

export type StoredSeries = { readonly state: SeriesState; readonly seen_at: Date };

/** Reads the states of series. A series without a value is absent. */
export async function readSeries(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { series, lock }: { series: readonly string[]; lock: boolean },
): Promise<Map<string, StoredSeries>> {
  const { rows } = await database.raw(
    `select series, time_nano::text, value::text, count::text, rebase, seen_at from otlp_series
      where tenant_id = ? and environment_id = ? and series = any(?) order by series ${lock ? 'for update' : ''}`,
    [tenant_id, environment_id, [...series]],
  );
  const known = new Map<string, StoredSeries>();
  for (const { series, time_nano, value, count, rebase, seen_at } of rows)
    if (time_nano !== null)
      known.set(series, { state: { time_nano: BigInt(time_nano), value, count, rebase }, seen_at: new Date(seen_at) });
  return known;
}

const ROWS_MAX = 5_000;

/** Adds rows for new series, so that each can be locked. Their order is one, so that concurrent requests do not deadlock. */
export async function addSeries(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { series, now }: { series: readonly string[]; now: Date },
): Promise<void> {
  const sorted = series.toSorted();
  for (let from = 0; from < sorted.length; from += ROWS_MAX)
    await database('otlp_series')
      .insert(
        sorted.slice(from, from + ROWS_MAX).map((series) => ({ tenant_id, environment_id, series, seen_at: now })),
      )
      .onConflict(['tenant_id', 'environment_id', 'series'])
      .ignore();
}

/** Stores the states of series that this transaction has locked. */
export async function writeSeries(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { states, now }: { states: ReadonlyMap<string, NonNullable<SeriesState>>; now: Date },
): Promise<void> {
  const rows = [...states].map(([series, { time_nano, value, count }]) => ({
    tenant_id,
    environment_id,
    series,
    time_nano: time_nano.toString(),
    value,
    count,
    rebase: false,
    seen_at: now,
  }));
  for (let from = 0; from < rows.length; from += ROWS_MAX)
    await database('otlp_series')
      .insert(rows.slice(from, from + ROWS_MAX))
      .onConflict(['tenant_id', 'environment_id', 'series'])
      .merge(['time_nano', 'value', 'count', 'rebase', 'seen_at']);
}

/** Deletes the states of series that sent nothing for long. Returns their number. */
export async function purgeSeries(database: Database, now: Date): Promise<number> {
  const before = new Date(now.getTime() - SERIES_RETENTION_DAYS * DAY_MS);
  const answer = await database.raw('delete from otlp_series where seen_at < ?', [before]);
  return answer.rowCount ?? 0;
}
