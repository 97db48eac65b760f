/** The fields of a meter that decide which events count and for how much. */
import type { WindowSize } from '../foundation/time/window.ts';
import type { AggregationType } from './aggregations/index.ts';

export type BucketSize = WindowSize;

export type MeterFilterDefinition = { readonly key: string; readonly values: readonly string[] };

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
  readonly filters: readonly MeterFilterDefinition[];
  readonly aggregation: MeterAggregation;
  readonly reset_usage: 'BILLING_PERIOD' | 'NEVER';
};
