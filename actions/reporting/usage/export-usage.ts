/**
 * The usage export (docs/rules/usage.md, "The usage export"): one record per customer and meter with events in the range, or one per charge
 * if amounts are requested. Records are ordered by external id, then by meter name. They are gathered in batches of customers, so that the
 * size of the export is not limited by memory.
 */

import type { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type ChargeInterval, computeUncovered, type Split } from '../../../core/rating/charge-intervals.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { type BatchCharges, loadBatchCharges, usageKey } from './export-charges.ts';
import type { ExportedCharge } from './export-records.ts';
import { listExportedCustomers } from './exported-customers.ts';
import { splitPortions } from './portions.ts';
import type { UsageExportQuery } from './usage-export-query.ts';

export type ExportedUsage = ChargeInterval & {
  readonly external_customer_id: string;
  /** Null if the events belong to no customer. */
  readonly customer: CustomerModel | null;
  readonly meter: MeterModel;
  readonly usage: Decimal;
  readonly event_count: number;
  /** Null if the usage is not charged, or amounts are not requested. */
  readonly charge: ExportedCharge | null;
};

const CUSTOMERS_PER_BATCH = 2000;

export async function* exportUsage(
  stores: Stores,
  scope: Scope,
  query: UsageExportQuery,
): AsyncGenerator<ExportedUsage> {
  const meters = await loadMeters(stores, scope, query.meter_ids);
  const event_names = [...new Set(meters.map(({ event_name }) => event_name))];
  const limit = query.customers_per_batch ?? CUSTOMERS_PER_BATCH;
  for (let after = ''; event_names.length > 0 || query.amounts; ) {
    const batch = await listExportedCustomers(stores, scope, { ...query, event_names, after, limit });
    if (batch.length > 0) yield* exportBatch(stores, scope, { query, meters, batch });
    if (batch.length < limit) return;
    after = batch.at(-1)!;
  }
}

async function loadMeters(stores: Stores, scope: Scope, ids: readonly string[] | null): Promise<MeterModel[]> {
  const meters = MeterModel.in(scope, stores.postgres).orderBy(['name', 'id']);
  if (!ids) return meters.where('status', 'published');
  const found = await meters.whereIn('id', [...ids]);
  const known = new Set(found.map(({ id }) => id));
  // A meter that does not exist is refused, because an empty export would hide the error.
  for (const id of ids) if (!known.has(id)) await MeterModel.fetch(scope, id, { database: stores.postgres });
  return found;
}

type UsageBatch = { query: UsageExportQuery; meters: readonly MeterModel[]; batch: readonly string[] };
type BatchRecord = Omit<ExportedUsage, 'customer'>;

const NO_CHARGES: Pick<BatchCharges, 'records' | 'charged'> = { records: [], charged: new Map() };

async function* exportBatch(
  stores: Stores,
  scope: Scope,
  { query, meters, batch }: UsageBatch,
): AsyncGenerator<ExportedUsage> {
  // Archived customers were charged, too; an external id may have had several owners.
  const customers = await CustomerModel.in(scope, stores.postgres).whereIn('external_id', [...batch]);
  const byExternalId = new Map(
    customers.filter(({ status }) => status === 'published').map((customer) => [customer.external_id, customer]),
  );
  const { records, charged } = query.amounts ? await loadBatchCharges(stores, scope, { query, customers }) : NO_CHARGES;
  const byCustomer = new Map<string, BatchRecord[]>(batch.map((id) => [id, []]));
  for (const record of records) byCustomer.get(record.external_customer_id)!.push(record);
  for await (const record of exportUncharged(stores, scope, { query, meters, batch, charged }))
    byCustomer.get(record.external_customer_id)!.push(record);
  for (const [external_customer_id, found] of byCustomer) {
    const customer = byExternalId.get(external_customer_id) ?? null;
    for (const record of found.sort(compareRecords)) yield { ...record, customer };
  }
}

/** Records of one meter in time order; at one time, in order of the line items. */
function compareRecords(a: BatchRecord, b: BatchRecord): number {
  const texts = ({ meter }: BatchRecord) => [meter.name, meter.id];
  const [left, right] = [texts(a), texts(b)];
  const at = left.findIndex((text, index) => text !== right[index]);
  return at < 0 ? a.start_us - b.start_us : left[at]! < right[at]! ? -1 : 1;
}

/**
 * Exports usage that no charge covers; all usage if amounts are not requested. Customers with the same uncharged intervals share their
 * queries.
 */
async function* exportUncharged(
  stores: Stores,
  scope: Scope,
  { query, meters, batch, charged }: UsageBatch & Pick<BatchCharges, 'charged'>,
): AsyncGenerator<BatchRecord> {
  for (const meter of meters) {
    const chargedTo = (customer: string) => charged.get(usageKey(customer, meter.id)) ?? [];
    for (const [gaps, customers] of groupByGaps(batch, chargedTo, query)) {
      // Days or months are the windows of one query. They divide the meter's own windows if those are longer.
      const window_size = query.split ?? undefined;
      for (const gap of gaps)
        for (const portion of splitPortions(customers, window_size ?? meter.aggregation.bucket_size, gap))
          yield* exportGap(gap, { stores, scope, query, meter, customers: portion, window_size });
    }
  }
}

function groupByGaps(
  batch: readonly string[],
  chargedTo: (customer: string) => readonly ChargeInterval[],
  query: UsageExportQuery,
): [ChargeInterval[], string[]][] {
  const groups = new Map<string, [ChargeInterval[], string[]]>();
  for (const customer of batch) {
    const gaps = computeUncovered({ start_us: query.start_us, end_us: query.end_us }, chargedTo(customer));
    const key = JSON.stringify(gaps);
    const group = groups.get(key);
    if (group) group[1].push(customer);
    else groups.set(key, [gaps, [customer]]);
  }
  return [...groups.values()];
}

type UnchargedUsageInput = {
  stores: Stores;
  scope: Scope;
  query: UsageExportQuery;
  meter: MeterModel;
  customers: readonly string[];
  window_size: Split | undefined;
};

async function* exportGap(
  { start_us, end_us }: ChargeInterval,
  { stores, scope, query, meter, customers, window_size }: UnchargedUsageInput,
): AsyncGenerator<BatchRecord> {
  const report = await readUsageReport(stores, scope, {
    meter,
    external_customer_ids: customers,
    start_us,
    end_us,
    window_size,
    timezone: query.timezone ?? undefined,
    by_customer: true,
    now_ms: query.now.getTime(),
    bounds: query.bounds,
  });
  for (const { key: external_customer_id, total, windows } of report.usage) {
    for (const { value: usage, event_count, start_us, end_us } of window_size ? windows : [total])
      if (event_count > 0) yield { external_customer_id, meter, usage, event_count, start_us, end_us, charge: null };
  }
}
