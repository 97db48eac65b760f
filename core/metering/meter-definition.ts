/** What metering needs to know of a meter: the fields that decide which events count and for how much. */
export type AggregationType =
  | 'COUNT'
  | 'SUM'
  | 'AVG'
  | 'COUNT_UNIQUE'
  | 'LATEST'
  | 'SUM_WITH_MULTIPLIER'
  | 'MAX'
  | 'WEIGHTED_SUM';

export type BucketSize =
  | 'MINUTE'
  | '15MIN'
  | '30MIN'
  | 'HOUR'
  | '3HOUR'
  | '6HOUR'
  | '12HOUR'
  | 'DAY'
  | 'WEEK'
  | 'MONTH';

export type MeterFilter = { readonly key: string; readonly values: readonly string[] };

export type MeterAggregation = {
  readonly type: AggregationType;
  readonly field?: string | null;
  readonly expression?: string | null;
  readonly multiplier?: string | null;
  readonly bucket_size?: BucketSize | null;
  readonly group_by?: string | null;
};

export type MeterDefinition = {
  readonly id: string;
  readonly event_name: string;
  readonly filters: readonly MeterFilter[];
  readonly aggregation: MeterAggregation;
  readonly reset_usage: 'BILLING_PERIOD' | 'NEVER';
};
