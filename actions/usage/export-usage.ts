/**
 * The usage export (docs/rules/usage.md, "The usage export"): one record per customer and meter with events in the range,
 * in order of the external ids and then of the meters' names, gathered customer batch by customer batch, so that the size
 * of the answer does not matter.
 */
import type { Decimal } from '../../core/decimal.ts';
import type { Scope } from '../../core/scope.ts';
import type { Microseconds } from '../../core/time/instant.ts';
import { windowCount } from '../../core/time/window.ts';
import { customersWithEvents } from '../../storage/events/event-names.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { MeterModel } from '../../storage/models/meter.ts';
import type { Stores } from '../../storage/stores.ts';
import { QUESTION_CELLS_MAX, type QuestionBounds } from '../../storage/usage/question.ts';
import { askUsage } from '../../storage/usage/usage.ts';

export type ExportAsked = {
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  /** All published meters when null. */
  readonly meter_ids: readonly string[] | null;
  readonly timezone: string | null;
  readonly now: Date;
  readonly customers_per_batch?: number;
  readonly bounds?: QuestionBounds | undefined;
};

export type ExportedUsage = {
  readonly external_customer_id: string;
  /** Null where events came for somebody who is not a customer. */
  readonly customer: CustomerModel | null;
  readonly meter: MeterModel;
  readonly usage: Decimal;
  readonly event_count: number;
};

const CUSTOMERS_PER_BATCH = 2000;

export async function* exportUsage(stores: Stores, scope: Scope, asked: ExportAsked): AsyncGenerator<ExportedUsage> {
  const meters = await metersOf(stores, scope, asked.meter_ids);
  const event_names = [...new Set(meters.map(({ event_name }) => event_name))];
  const limit = asked.customers_per_batch ?? CUSTOMERS_PER_BATCH;
  const { start_us, end_us } = asked;
  for (let after = ''; event_names.length > 0; ) {
    const question = { ...own(scope), event_names, after, start_us, end_us, limit };
    const rows = await customersWithEvents.ask(stores.clickhouse, question);
    const batch = rows.map(({ external_customer_id }) => external_customer_id);
    if (batch.length > 0) yield* usageOfBatch(stores, scope, { asked, meters, batch });
    if (batch.length < limit) return;
    after = batch.at(-1)!;
  }
}

function own({ tenant_id, environment_id }: Scope): Scope {
  return { tenant_id, environment_id };
}

async function metersOf(stores: Stores, scope: Scope, ids: readonly string[] | null): Promise<MeterModel[]> {
  const meters = MeterModel.in(scope, stores.postgres).orderBy(['name', 'id']);
  if (!ids) return meters.where('status', 'published');
  const found = await meters.whereIn('id', [...ids]);
  const known = new Set(found.map(({ id }) => id));
  // The answer for one that does not exist is that it does not exist, and no empty export.
  for (const id of ids) if (!known.has(id)) await MeterModel.fetch(scope, id, { database: stores.postgres });
  return found;
}

async function* usageOfBatch(
  stores: Stores,
  scope: Scope,
  { asked, meters, batch }: { asked: ExportAsked; meters: readonly MeterModel[]; batch: readonly string[] },
): AsyncGenerator<ExportedUsage> {
  const customers = await CustomerModel.in(scope, stores.postgres)
    .whereIn('external_id', [...batch])
    .where('status', 'published');
  const byExternalId = new Map(customers.map((customer) => [customer.external_id, customer]));
  const byCustomer = new Map<string, ExportedUsage[]>(batch.map((id) => [id, []]));
  for (const meter of meters) {
    for (const external_customer_ids of together(batch, meter, asked)) {
      const report = await askUsage(stores, scope, {
        meter,
        external_customer_ids,
        start_us: asked.start_us,
        end_us: asked.end_us,
        timezone: asked.timezone ?? undefined,
        by_customer: true,
        now_ms: asked.now.getTime(),
        bounds: asked.bounds,
      });
      for (const { key, total } of report.usage) {
        if (total.event_count === 0) continue;
        const customer = byExternalId.get(key) ?? null;
        const { value: usage, event_count } = total;
        byCustomer.get(key)!.push({ external_customer_id: key, customer, meter, usage, event_count });
      }
    }
  }
  for (const records of byCustomer.values()) yield* records;
}

/** Of a meter with windows of its own each customer is as many cells as the range has windows: fewer are asked for at once. */
function* together(batch: readonly string[], { aggregation }: MeterModel, { start_us, end_us }: ExportAsked) {
  const windows = Math.ceil(windowCount({ start_us, end_us }, aggregation.bucket_size));
  const size = Math.max(1, Math.floor(CELLS_AT_ONCE / windows));
  for (let from = 0; from < batch.length; from += size) yield batch.slice(from, from + size);
}

const CELLS_AT_ONCE = QUESTION_CELLS_MAX / 4;
