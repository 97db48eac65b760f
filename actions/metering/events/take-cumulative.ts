/**
 * Takes points of cumulative series: each becomes an event with the usage since the last value (docs/decisions/0032-cumulative-metrics.md).
 * The new value and the event commit together, under a lock of the series. So a point counts once, whichever processes receive it and
 * wherever one of them ends.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import { advanceSeries, type CumulativePoint, type SeriesState } from '../../../core/metering/event/cumulative.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { addOutboxEvents, type OutboxEvents, removeOutboxEvents } from '../../../storage/progress/event-outbox.ts';
import { addSeries, readSeries, type StoredSeries, writeSeries } from '../../../storage/progress/otlp-series.ts';
import { splitIntoBodies } from './append-events.ts';
import { appendOutboxEvents } from './move-outbox-events.ts';

export type SeriesPoint = {
  readonly series: string;
  readonly event_id: string;
  readonly point: CumulativePoint;
  /** Builds the JSON text of the event with this usage. */
  toEvent(value: string, count: string | null): string;
};

type SeriesFault = { readonly index: number; readonly why: string };

/** A series is written at least this often, so that one without new usage is not deleted. */
const SEEN_MS = DAY_MS;

/** Returns the refused points by their index. Resolves when the events of the others are in the log. */
export async function takeCumulativePoints(
  stores: Pick<Stores, 'postgres' | 'log'>,
  scope: Scope,
  { points, now }: { points: readonly SeriesPoint[]; now: Date },
): Promise<readonly SeriesFault[]> {
  const known = await readSeries(stores.postgres, scope, { series: listSeries(points), lock: false });
  const changing = points
    .map((point, index) => ({ ...point, index }))
    .filter((one) => mayChange(one, known.get(one.series), now));
  if (changing.length === 0) return [];
  const { entries, faults } = await stores.postgres.transaction((transaction) =>
    recordPoints(transaction, scope, { points: changing, now }),
  );
  // If this fails, the pipeline appends the events later.
  for (const entry of entries) await appendOutboxEvents(stores.log, entry);
  if (entries.length > 0)
    await removeOutboxEvents(
      stores.postgres,
      scope,
      entries.map(({ id }) => id),
    );
  return faults;
}

const listSeries = (points: readonly SeriesPoint[]) => [...new Set(points.map(({ series }) => series))];

/** Most points of idle series bring nothing. That remains true after other changes, because a value only grows. */
function mayChange({ point }: SeriesPoint, known: StoredSeries | undefined, now: Date): boolean {
  if (known === undefined || now.getTime() - known.seen_at.getTime() > SEEN_MS) return true;
  return advanceSeries(known.state, point, now).kind !== 'nothing';
}

type NumberedPoint = SeriesPoint & { readonly index: number };

async function recordPoints(
  transaction: Transaction,
  scope: Scope,
  { points, now }: { points: readonly NumberedPoint[]; now: Date },
): Promise<{ entries: OutboxEvents[]; faults: SeriesFault[] }> {
  const series = listSeries(points);
  await addSeries(transaction, scope, { series, now });
  const known = await readSeries(transaction, scope, { series, lock: true });
  const states = new Map<string, NonNullable<SeriesState>>();
  for (const [name, { state }] of known) if (state !== null) states.set(name, state);
  const faults: SeriesFault[] = [];
  const events: { event_id: string; bytes: Buffer }[] = [];
  const inOrder = points.toSorted((a, b) => (a.point.time_nano < b.point.time_nano ? -1 : 1));
  for (const { series, event_id, point, index, toEvent } of inOrder) {
    const step = advanceSeries(states.get(series) ?? null, point, now);
    if (step.kind === 'fault') faults.push({ index, why: step.why });
    if (step.kind === 'delta') events.push({ event_id, bytes: Buffer.from(toEvent(step.value, step.count)) });
    if (step.kind === 'delta' || step.kind === 'baseline') states.set(series, point);
  }
  await writeSeries(transaction, scope, { states, now });
  const entries: OutboxEvents[] = [];
  for (const some of splitIntoBodies(events)) {
    const each = { event_ids: some.map((one) => one.event_id), events: some.map(({ bytes }) => bytes.toString()) };
    const entry = { ...scope, ...each, received_at: now };
    entries.push({ ...entry, id: await addOutboxEvents(transaction, scope, entry) });
  }
  return { entries, faults: faults.toSorted((a, b) => a.index - b.index) };
}
