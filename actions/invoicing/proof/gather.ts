/**
 * Gathers the inputs of an invoice proof: the invoice, its lines and, for each usage line, the customers, the meter definition and the log
 * offsets up to which events were counted (`marks`). Lines written by an older version do not name their customers. These are then derived
 * as billing does today; seal-lines.ts verifies the result against the stored event count and quantity.
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import type { CountedLine } from '../../../core/invoicing/proof/record.ts';
import type { MeterDefinition } from '../../../core/metering/meter-definition.ts';
import type { CountedScope } from '../../../core/rating/computed-from.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { findDefinitionAt } from '../../../storage/progress/meter-versions.ts';
import { toOffsetsText } from '../../../storage/progress/partition-progress.ts';
import { buildCountedCustomers } from '../../rating/measure-usage.ts';
import { buildCustomerFilter, loadMembers } from '../../rating/members.ts';
import { loadWithLines } from '../records/invoice-records.ts';
import { findLevelTime, type LevelTime } from './level-digest.ts';

/** Describes which events a usage line counted and how; lines with equal `key` share one result. */
export type LineCounting = {
  readonly key: string;
  /** Identifies the events to read; several meters may count the same ones. */
  readonly source: string;
  readonly counted: CountedLine;
  readonly definition: MeterDefinition;
  /** Interval of the integral, for a meter that charges a level over time (docs/rules/metering.md, "Levels over time"); otherwise null. */
  readonly level: LevelTime | null;
};

export type ProvableInvoice = {
  readonly invoice: Invoice;
  readonly lines: readonly {
    readonly line: InvoiceLineItemModel;
    readonly counting: LineCounting | null;
  }[];
};

/** Gathers the inputs of a proof. Refuses a draft, because it is recomputed before it becomes final. */
export async function gatherProvable(database: Database, scope: Scope, invoice_id: string): Promise<ProvableInvoice> {
  const invoice = await InvoiceModel.fetch(scope, invoice_id, { database });
  if (invoice.invoice_status === 'DRAFT')
    throw notAllowed('a draft has no proof: it is computed once more before it is final', { invoice_id });
  const { line_items, ...record } = await loadWithLines(invoice, database);
  const lines = await loadCountings(database, scope, line_items as InvoiceLineItemModel[]);
  return { invoice: record, lines };
}

/** Loads which events each line counted. It is null for a line without usage, and if the definition of the meter is no longer stored. */
export async function loadCountings<Line extends CountableLine>(
  database: Database,
  scope: Scope,
  lines: readonly Line[],
): Promise<{ readonly line: Line; readonly counting: LineCounting | null }[]> {
  const definitions = new Map<string, ReturnType<typeof findDefinitionAt>>();
  const findDefinition: DefinitionReader = ({ meter_id, version }) => {
    const key = JSON.stringify([meter_id, version]);
    const known = definitions.get(key) ?? findDefinitionAt(database, scope, { meter_id, version });
    definitions.set(key, known);
    return known;
  };
  const loaded = [];
  for (const line of lines)
    loaded.push({ line, counting: await loadCounting(database, scope, { line, findDefinition }) });
  return loaded;
}

type CountableLine = Pick<InvoiceLineItemModel, 'subscription_id' | 'period_start' | 'computed_from'>;
type DefinitionReader = (version: { meter_id: string; version: number }) => ReturnType<typeof findDefinitionAt>;

async function loadCounting(
  database: Database,
  scope: Scope,
  { line, findDefinition }: { line: CountableLine; findDefinition: DefinitionReader },
): Promise<LineCounting | null> {
  const { meter_id, meter_version, window_start, window_end, high_water } = line.computed_from ?? {};
  if (!meter_id || !meter_version || !window_start || !window_end || !high_water) return null;
  const version = Number(meter_version);
  const found = await findDefinition({ meter_id, version });
  if (found === null) return null;
  const { definition, stop } = found;
  const { event_name, aggregation, filters, reset_usage } = definition;
  const counted: CountedLine = {
    meter: {
      id: meter_id,
      version,
      event_name,
      aggregation: aggregation as CountedLine['meter']['aggregation'],
      filters: filters.map(({ key, values }) => ({ key, values: [...values] })),
      reset_usage,
    },
    ...(line.computed_from?.counted ?? (await computeAsBilled(database, scope, line))),
    window_start,
    window_end,
    marks: computeMarks(high_water, stop),
    ends: toOffsetsText(stop),
  };
  const { customers, marks } = counted;
  const source = JSON.stringify([event_name.trim(), customers, window_start, window_end, marks]);
  const level = findLevelTime(line);
  return { key: JSON.stringify([counted, level]), source, counted, definition, level };
}

/**
 * Computes the first uncounted offset of each partition: the high-water offset, or the offset at which the meter version ended if it is
 * smaller.
 */
function computeMarks(high_water: Readonly<Record<string, string>>, stop: ReadonlyMap<number, bigint>) {
  const marks = Object.entries(high_water).map(([partition, offset]) => {
    const end = stop.get(Number(partition));
    return [partition, end !== undefined && end < BigInt(offset) ? String(end) : offset] as const;
  });
  return Object.fromEntries(marks);
}

async function computeAsBilled(database: Database, scope: Scope, line: CountableLine): Promise<CountedScope> {
  const subscription = await SubscriptionModel.fetch(scope, line.subscription_id ?? '', { database });
  const members = (await loadMembers(database, scope, [subscription])).get(subscription.id)!;
  const { window_start, window_end } = line.computed_from ?? {};
  const window = { start: toInstant(window_start ?? ''), end: toInstant(window_end ?? '') };
  return buildCountedCustomers(buildCustomerFilter(members, window, toInstant(line.period_start ?? '')), subscription);
}
