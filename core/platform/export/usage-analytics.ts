/** Columns of exported usage analytics (docs/rules/exports.md, "Usage analytics"). */
import type { Decimal } from '../../foundation/decimal.ts';
import type { Microseconds } from '../../foundation/time/instant.ts';
import { defineExportColumns } from './column.ts';

export type ExportedUsageLine = {
  readonly customer: { readonly id: string; readonly external_id: string; readonly name: string } | null;
  readonly external_customer_id: string;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly feature: { readonly id: string; readonly name: string } | null;
  readonly feature_group_name: string | null;
  readonly meter: {
    readonly name: string;
    readonly event_name: string;
    readonly aggregation: { readonly field?: string | null | undefined };
  };
  readonly event_count: number;
  readonly usage: Decimal;
  readonly cost: Decimal;
  readonly currency: string | null;
};

const { text, word, decimal, integer, instant } = defineExportColumns<ExportedUsageLine>();

export const USAGE_ANALYTICS_COLUMNS = [
  text('customer_name', ({ customer }) => customer?.name ?? null),
  word('customer_id', ({ customer }) => customer?.id ?? null),
  text('customer_external_id', (line) => line.external_customer_id),
  instant('start_time', (line) => line.start_us),
  instant('end_time', (line) => line.end_us),
  text('feature_name', ({ feature, meter }) => feature?.name ?? meter.name),
  word('feature_id', ({ feature }) => feature?.id ?? null),
  text('feature_group_name', (line) => line.feature_group_name),
  text('event_name', ({ meter }) => meter.event_name),
  integer('event_count', (line) => line.event_count),
  text('aggregation_field', ({ meter }) => meter.aggregation.field ?? null),
  decimal('total_usage', ({ usage }) => usage.toFixed()),
  decimal('total_cost', ({ cost }) => cost.toFixed()),
  word('currency', (line) => line.currency),
  // Empty, because a line counts the events of all sources.
  text('source', () => null),
];
