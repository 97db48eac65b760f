/**
 * The second count. Every other path, even the recount of bucket rows, reads corrected events by one statement
 * (storage/events/raw-events.ts). So a fault of that statement would be in all of them. Here the accepted corrections come from
 * Postgres and are applied one by one to the events as sent. Both counts must give equal rows.
 */
import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../../core/foundation/scope.ts';
import { US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { BucketAggregator, type BucketRow } from '../../../core/metering/bucket-aggregator.ts';
import { measure } from '../../../core/metering/compiled-meter.ts';
import { properties as propertiesIn } from '../../../core/metering/event-text.ts';
import { matches } from '../../../core/metering/match.ts';
import { type RowDifference, rowDifferences, type StoredFields } from '../../../core/metering/row-differences.ts';
import {
  listAcceptedCorrections,
  listCorrectedEvents,
  listCustomersByDay,
  type SentEvent,
  streamReplacements,
  streamSentEventsByDay,
} from '../../../storage/audit/events-as-sent.ts';
import { withBucketsLockedForReading } from '../../../storage/progress/bucket-lock.ts';
import { listMetersToAudit } from '../../../storage/progress/meter-versions.ts';
import { nextOffsets, type PartitionProgress } from '../../../storage/progress/partition-progress.ts';
import { readProgress } from '../../../storage/progress/slices.ts';
import {
  type CountedMeter,
  findCountedMeter,
  listDaysWithEvents,
  recountDaysOfMeters,
  toEventsKey,
} from '../../../storage/usage/recount.ts';
import { applyCorrections, parseReplacement } from './accepted-contents.ts';
import type { AuditStores, OnFinding } from './findings.ts';

type SecondCountInput = {
  /** Number of newest corrections whose events are counted; all if absent. */
  readonly newest?: number;
  /** Number of additional days of meters, corrected or not. */
  readonly days: number;
  /** Returns numbers in [0, 1). */
  readonly chance: () => number;
};

const CUSTOMERS_MAX = 200;
const SAMPLED_CUSTOMERS = 20;
const READING_SECONDS_MAX = 60;

export async function auditSecondCount(
  stores: AuditStores,
  input: SecondCountInput,
  found: OnFinding,
): Promise<{ customer_days: number; rows: number }> {
  const counts = { customer_days: 0, rows: 0 };
  for (const { scope, days } of await chooseCustomerDays(stores, input)) {
    const customers = new Set([...days.values()].flatMap((some) => [...some]));
    const named = await findCorrectedEvents(stores, scope, { customers, isSample: input.newest !== undefined });
    for (const unit of splitIntoUnits(scope, days, named)) {
      counts.customer_days += unit.external_customer_ids.length;
      counts.rows += await compareUnit(stores, unit, found);
    }
  }
  return counts;
}

/** Customers with usage to compare, by UTC day. */
type CustomerDays = Map<number, Set<string>>;
type ScopedCustomerDays = { readonly scope: Scope; readonly days: CustomerDays };

/** Chooses the days on which corrected events are or were counted, and some random days. */
async function chooseCustomerDays(
  stores: AuditStores,
  { newest, days, chance }: SecondCountInput,
): Promise<ScopedCustomerDays[]> {
  const chosen = new Map<string, ScopedCustomerDays>();
  const customerDaysIn = ({ tenant_id, environment_id }: Scope): CustomerDays => {
    const scope = { tenant_id, environment_id };
    let known = chosen.get(scopeKey(scope));
    if (!known) chosen.set(scopeKey(scope), (known = { scope, days: new Map() }));
    return known.days;
  };
  for (const events of groupBy(await listCorrectedEvents(stores.postgres, newest), scopeKey).values()) {
    const customerDays = customerDaysIn(events[0]);
    const event_ids = events.map(({ event_id }) => event_id);
    for (const contents of (await applyCorrections(stores, events[0], event_ids)).values())
      for (const content of contents) addCustomerDay(customerDays, toUtcDay(content), content.external_customer_id);
  }
  for (const { scope, day, customers } of await chooseRandomDays(stores, { days, chance }))
    for (const customer of customers) addCustomerDay(customerDaysIn(scope), day, customer);
  return [...chosen.values()];
}

type RandomDay = { readonly scope: Scope; readonly day: number; readonly customers: readonly string[] };

/** Chooses random days of meters, and some customers of each day. The days of a meter are listed once, however many of them are chosen. */
async function chooseRandomDays(
  stores: AuditStores,
  { days, chance }: Pick<SecondCountInput, 'days' | 'chance'>,
): Promise<RandomDay[]> {
  const pick = <T>(from: readonly T[]) => from[Math.floor(chance() * from.length)]!;
  const meters = await listMetersToAudit(stores.postgres, {});
  if (meters.length === 0) return [];
  const chosen: RandomDay[] = [];
  const progress = await readProgress(stores.postgres);
  const picked = Array.from({ length: days }, () => pick(meters));
  for (const picks of groupBy(picked, (meter) => `${scopeKey(meter)} ${meter.meter_id}`).values()) {
    const [{ meter_id, ...scope }] = picks;
    const counted = await loadCountedMeter(stores, scope, { meter_id, progress });
    const all = counted ? await listDaysWithEvents(stores, counted) : [];
    if (!counted || all.length === 0) continue;
    const { event_name } = counted.meter;
    for (const day of new Set(picks.map(() => pick(all).day))) {
      const wanted = { event_name, day, limit: SAMPLED_CUSTOMERS };
      chosen.push({ scope, day, customers: await listCustomersByDay(stores.clickhouse, scope, wanted) });
    }
  }
  return chosen;
}

function addCustomerDay(customerDays: CustomerDays, day: number, customer: string): void {
  const known = customerDays.get(day);
  if (known) known.add(customer);
  else customerDays.set(day, new Set([customer]));
}

function toUtcDay({ timestamp_us }: Pick<SentEvent, 'timestamp_us'>): number {
  return Math.floor(timestamp_us / US_PER_DAY);
}

/**
 * Finds corrected events by the customer that a replacement names: an event may count for that customer now, whatever customer it was sent
 * for.
 */
async function findCorrectedEvents(
  { postgres }: AuditStores,
  scope: Scope,
  { customers, isSample }: { customers: ReadonlySet<string>; isSample: boolean },
): Promise<Map<string, Set<string>>> {
  const named = new Map<string, Set<string>>();
  for await (const rows of streamReplacements(postgres, scope, isSample ? [...customers] : null)) {
    for (const { event_id, replacement } of rows) {
      const { external_customer_id } = parseReplacement(replacement);
      if (!customers.has(external_customer_id)) continue;
      const known = named.get(external_customer_id);
      if (known) known.add(event_id);
      else named.set(external_customer_id, new Set([event_id]));
    }
  }
  return named;
}

/** Some customers on one day, which are counted together. */
type RecountUnit = {
  readonly scope: Scope;
  readonly day: number;
  readonly external_customer_ids: readonly string[];
  /** Corrected events that a replacement may have assigned to these customers. */
  readonly moved: readonly string[];
};

function* splitIntoUnits(
  scope: Scope,
  days: CustomerDays,
  named: ReadonlyMap<string, ReadonlySet<string>>,
): Generator<RecountUnit> {
  for (const [day, customers] of days) {
    const all = [...customers];
    for (let from = 0; from < all.length; from += CUSTOMERS_MAX) {
      const external_customer_ids = all.slice(from, from + CUSTOMERS_MAX);
      const moved = external_customer_ids.flatMap((customer) => [...(named.get(customer) ?? [])]);
      yield { scope, day, external_customer_ids, moved };
    }
  }
}

/** Loads `RecountUnit.moved` again: a correction may have assigned another event to these customers meanwhile. */
async function loadMoved(stores: AuditStores, { scope, external_customer_ids }: RecountUnit): Promise<string[]> {
  const customers = new Set(external_customer_ids);
  const named = await findCorrectedEvents(stores, scope, { customers, isSample: true });
  return [...named.values()].flatMap((event_ids) => [...event_ids]);
}

/**
 * Compares the rows of a unit. Differing rows are counted again while no slice and no rebuild is in progress. Returns the number of
 * compared rows.
 */
async function compareUnit(stores: AuditStores, unit: RecountUnit, found: OnFinding): Promise<number> {
  const first = await countTwice(stores, unit, await readProgress(stores.postgres));
  if (first.differences.length === 0) return first.rows;
  const name = `second count ${unit.day}`;
  const { differences } = await withBucketsLockedForReading(
    stores.postgres,
    { name, seconds_max: READING_SECONDS_MAX },
    async (progress) => countTwice(stores, { ...unit, moved: await loadMoved(stores, unit) }, progress),
  );
  const { tenant_id, environment_id } = unit.scope;
  for (const some of groupBy(differences, ({ meter_id }) => meter_id).values()) {
    const [{ meter_id, external_customer_id, field, expected, stored }] = some;
    const what =
      `rows are counted otherwise by the corrections that were accepted than by those that are stored: ${tenant_id} ${environment_id} ` +
      `${meter_id} ${formatDay(unit.day)} customer ${JSON.stringify(external_customer_id)}: ${field} is ${stored ?? 'missing'}, should be ${expected ?? 'absent'}`;
    found({ kind: 'counts_disagree', count: some.length, what });
  }
  return first.rows;
}

function formatDay(day: number): string {
  return new Date((day * US_PER_DAY) / 1000).toISOString().slice(0, 10);
}

type SecondCountResult = {
  readonly rows: number;
  readonly differences: readonly (RowDifference & { readonly meter_id: string })[];
};

async function countTwice(
  stores: AuditStores,
  unit: RecountUnit,
  progress: readonly PartitionProgress[],
): Promise<SecondCountResult> {
  const { scope, day, external_customer_ids } = unit;
  const known = await listMetersToAudit(stores.postgres, scope);
  const counted = await Promise.all(
    known.map(({ meter_id }) => loadCountedMeter(stores, scope, { meter_id, progress })),
  );
  // No query reads the rows of a meter that is being back-filled, so they are not audited.
  const meters = counted.filter((meter) => meter !== undefined);
  const expected = groupBy(await countAsAccepted(stores, unit, meters), ({ meter_id }) => meter_id);
  const result = { rows: 0, differences: [] as (RowDifference & { meter_id: string })[] };
  for (const group of groupBy(meters, toEventsKey).values()) {
    const rows = await recountDaysOfMeters(stores, group, { days: [day, day + 1], external_customer_ids });
    const read = groupBy(rows, ({ meter_id }) => meter_id);
    for (const { meter_id } of group) {
      const own = expected.get(meter_id) ?? [];
      result.rows += own.length;
      for (const difference of rowDifferences(own, toStoredFields(read.get(meter_id) ?? [], own)))
        result.differences.push({ ...difference, meter_id });
    }
  }
  return result;
}

async function loadCountedMeter(
  { postgres }: AuditStores,
  { tenant_id, environment_id }: Scope,
  { meter_id, progress }: { meter_id: string; progress: readonly PartitionProgress[] },
): Promise<CountedMeter | undefined> {
  return findCountedMeter({ postgres }, { tenant_id, environment_id }, { meter_id, before: nextOffsets(progress) });
}

/**
 * Converts rows for the comparison. The set of distinct values is compared by its size, and by the size of its union with the expected one.
 */
function toStoredFields(rows: readonly BucketRow[], expected: readonly BucketRow[]): StoredFields[] {
  const sets = new Map(expected.map((row) => [rowKey(row), row.uniques]));
  return rows.map((row) => ({
    tenant_id: row.tenant_id,
    environment_id: row.environment_id,
    meter_id: row.meter_id,
    external_customer_id: row.external_customer_id,
    size: row.size,
    bucket_start_us: row.bucket_start_us,
    group_key: row.group_key,
    first_us: row.first_us,
    last_us: row.last_us,
    count: row.count,
    sum: row.sum,
    weighted_sum: row.weighted_sum,
    min: row.min,
    max: row.max,
    latest: row.latest,
    unique_count: row.uniques.length,
    united_count: new Set([...row.uniques, ...(sets.get(rowKey(row)) ?? [])]).size,
  }));
}

function rowKey({ size, external_customer_id, bucket_start_us, group_key }: BucketRow): string {
  return JSON.stringify([size, external_customer_id, bucket_start_us, group_key]);
}

async function countAsAccepted(
  stores: AuditStores,
  unit: RecountUnit,
  meters: readonly CountedMeter[],
): Promise<BucketRow[]> {
  const { scope, day, external_customer_ids } = unit;
  const aggregator = new BucketAggregator();
  const event_names = [...new Set(meters.map(({ meter }) => meter.event_name))];
  const corrected = new Set(unit.moved);
  for await (const events of streamSentEventsByDay(stores.clickhouse, {
    ...scope,
    day,
    event_names,
    external_customer_ids,
  })) {
    const ids = events.map(({ event_id }) => event_id);
    for (const { event_id } of await listAcceptedCorrections(stores.postgres, scope, ids)) corrected.add(event_id);
    for (const event of events) if (!corrected.has(event.event_id)) addSentEvent(aggregator, meters, event);
  }
  const customers = new Set(external_customer_ids);
  for (const contents of (await applyCorrections(stores, scope, [...corrected])).values()) {
    const last = contents.at(-1)!;
    if (!last.is_void && toUtcDay(last) === day && customers.has(last.external_customer_id))
      addSentEvent(aggregator, meters, last);
  }
  return [...aggregator.drain()].flat();
}

/** Adds the event to the rows of the meters that count it, unless its offset is after the meter's counted progress. */
function addSentEvent(aggregator: BucketAggregator, meters: readonly CountedMeter[], sent: SentEvent): void {
  const properties = propertiesIn(sent.properties);
  for (const counted of meters) {
    const { meter, before } = counted;
    if (meter.event_name !== sent.event_name || BigInt(sent.offset) >= (before.get(sent.partition) ?? 0n)) continue;
    if (!matches(meter, properties)) continue;
    const contribution = measure(meter, { ...sent, properties });
    if (contribution.unusable === undefined) aggregator.add(counted, meter, contribution);
  }
}
