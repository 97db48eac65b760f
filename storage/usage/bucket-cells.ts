/** The pre-aggregated rows of a question, merged by the engine: one row per segment, group (and customer when asked). */
import type { Range, SegmentPlan } from '../../core/analytics/segments.ts';
import { Decimal } from '../../core/decimal.ts';
import { UsageBucket } from '../../core/metering/bucket.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import { scaledOfDecimal } from '../../core/metering/quantity.ts';
import type { Scope } from '../../core/scope.ts';
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse.ts';

export type BucketQuestion = Scope & {
  readonly meter: CompiledMeter;
  readonly meter_version: number;
  /** All customers when null. */
  readonly external_customer_ids: readonly string[] | null;
  readonly by_customer: boolean;
  readonly plan: SegmentPlan;
  /** Distinct values found in raw rows, to be united with the stored sets. */
  readonly extra_uniques: readonly ExtraUniques[];
};

export type ExtraUniques = {
  segment_us: number;
  window_us: number;
  group_key: string;
  customer: string;
  values: readonly string[];
};

/** A merged partial: where it belongs, and what it holds. `unique_count` where the type counts distinct values. */
export type Cell = {
  readonly segment_us: number;
  /** The start of the base row where rows are windows; the segment's start otherwise. */
  readonly window_us: number;
  readonly group_key: string;
  readonly customer: string;
  readonly bucket: UsageBucket;
  readonly unique_count: number;
};

type CellRow = {
  segment: string;
  bucket_window: string;
  group_key: string;
  customer: string;
  event_total: string;
  value_sum: string;
  weight_sum: string;
  value_min: string | null;
  value_max: string | null;
  newest: [string, string, string];
  distinct_values: string;
};

export async function bucketCells(clickhouse: ClickHouseClient, asked: BucketQuestion): Promise<Cell[]> {
  const { plan } = asked;
  if (plan.base_ranges.length + plan.day_ranges.length === 0 && asked.extra_uniques.length === 0) return [];
  const { sql, params } = statementOf(asked);
  try {
    const answer = await clickhouse.query({ query: sql, query_params: params, format: 'JSONEachRow' });
    return (await answer.json<CellRow>()).map(cellOf);
  } catch (error) {
    throw clickhouseFailure('usage buckets', error);
  }
}

function statementOf(asked: BucketQuestion): { sql: string; params: Record<string, unknown> } {
  const params: Record<string, unknown> = {
    tenant_id: asked.tenant_id,
    environment_id: asked.environment_id,
    meter_id: asked.meter.id,
    meter_version: asked.meter_version,
    segments: asked.plan.segments.map((segment) => Math.floor(segment.start_us / 1_000_000)),
  };
  const times = [
    ...asked.plan.base_ranges.map((range, index) =>
      rangeCondition(asked.meter.base_size, range, { params, name: `base_${index}` }),
    ),
    ...asked.plan.day_ranges.map((range, index) => rangeCondition('DAY', range, { params, name: `day_${index}` })),
  ];
  const customers = asked.external_customer_ids === null ? '' : 'and external_customer_id in {customers:Array(String)}';
  if (asked.external_customer_ids !== null) params['customers'] = asked.external_customer_ids;
  const start = 'toInt64(toUnixTimestamp64Second(bucket_start))';
  const rows = `
    select roundDown(${start}, {segments:Array(Int64)}) as segment,
           ${asked.plan.rows_are_windows ? start : '0'} as bucket_window,
           group_key, ${asked.by_customer ? 'external_customer_id' : "''"} as customer,
           event_count, sum, weighted_sum, min, max, latest, uniques
      from usage_buckets
     where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and meter_id = {meter_id:String}
       and meter_version = {meter_version:UInt32} ${customers} and (${times.join(' or ') || '0'})`;
  return {
    params,
    sql: `
    select segment, bucket_window, group_key, customer, sum(event_count) as event_total, sum(sum) as value_sum,
           sum(weighted_sum) as weight_sum, min(min) as value_min, max(max) as value_max, max(latest) as newest,
           uniqExactMerge(uniques) as distinct_values
      from (${rows} ${extraRows(asked, params)})
     group by segment, bucket_window, group_key, customer`,
  };
}

function rangeCondition(
  size: string,
  range: Range,
  { params, name }: { params: Record<string, unknown>; name: string },
): string {
  params[`${name}_start`] = range[0] / 1_000_000;
  params[`${name}_end`] = range[1] / 1_000_000;
  return `(size = '${size}' and bucket_start >= toDateTime64({${name}_start:Int64}, 0, 'UTC') and bucket_start < toDateTime64({${name}_end:Int64}, 0, 'UTC'))`;
}

function extraRows(asked: BucketQuestion, params: Record<string, unknown>): string {
  if (asked.extra_uniques.length === 0) return '';
  params['extra'] = JSON.stringify(
    asked.extra_uniques.map((extra) => [
      Math.floor(extra.segment_us / 1_000_000),
      extra.window_us / 1_000_000,
      extra.group_key,
      extra.customer,
      extra.values,
    ]),
  );
  return `
    union all
    select x.1, x.2, x.3, x.4, 0, 0, 0, null, null, (toInt64(-9223372036854775808), '', toDecimal256(0, 24)),
           arrayReduce('uniqExactState', x.5)
      from (select arrayJoin(JSONExtract({extra:String}, 'Array(Tuple(Int64, Int64, String, String, Array(String)))')) as x)`;
}

function cellOf(row: CellRow): Cell {
  const [timestamp_us, event_id, value] = row.newest;
  return {
    segment_us: Number(row.segment) * 1_000_000,
    window_us: Number(row.bucket_window) * 1_000_000,
    group_key: row.group_key,
    customer: row.customer,
    unique_count: Number(row.distinct_values),
    bucket: UsageBucket.of({
      count: Number(row.event_total),
      sum: scaled(row.value_sum),
      weighted_sum: scaled(row.weight_sum),
      min: row.value_min === null ? null : scaled(row.value_min),
      max: row.value_max === null ? null : scaled(row.value_max),
      latest: timestamp_us === NEVER ? null : { timestamp_us: Number(timestamp_us), event_id, value: scaled(value) },
      uniques: [],
    }),
  };
}

const NEVER = '-9223372036854775808';

function scaled(text: string): bigint {
  return scaledOfDecimal(new Decimal(text));
}
