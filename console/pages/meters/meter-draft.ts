/** The draft of a meter in the builder, and the requests that it becomes. The service checks them and names the field of a fault. */
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import type { ChartPoint } from '../../charts/series.ts';

export const AGGREGATION_CHOICES = [
  'COUNT',
  'SUM',
  'MAX',
  'COUNT_UNIQUE',
  'LATEST',
  'AVG',
  'SUM_WITH_MULTIPLIER',
  'WEIGHTED_SUM',
] as const;
export type AggregationChoice = (typeof AGGREGATION_CHOICES)[number];

export const BUCKET_SIZES = ['MINUTE', 'HOUR', 'DAY', 'WEEK', 'MONTH'] as const;

export type FilterDraft = { readonly key: string; readonly values: readonly string[] };

export type MeterDraft = {
  readonly name: string;
  readonly event_name: string;
  readonly type: AggregationChoice;
  readonly source: 'field' | 'expression';
  readonly field: string;
  readonly expression: string;
  readonly multiplier: string;
  readonly bucket_size: string;
  readonly group_by: string;
  readonly filters: readonly FilterDraft[];
  readonly reset_usage: 'BILLING_PERIOD' | 'NEVER';
};

export function createMeterDraft(event_name: string): MeterDraft {
  return {
    name: '',
    event_name,
    type: 'COUNT',
    source: 'field',
    field: '',
    expression: '',
    multiplier: '',
    bucket_size: '',
    group_by: '',
    filters: [],
    reset_usage: 'BILLING_PERIOD',
  };
}

export function hasValue(type: AggregationChoice): boolean {
  return type !== 'COUNT';
}

export function canBucket(type: AggregationChoice): boolean {
  return type === 'SUM' || type === 'MAX';
}

export function canGroup(draft: MeterDraft): boolean {
  return draft.type === 'MAX' && draft.bucket_size !== '';
}

/** Whether the draft names all that a trial needs. */
export function isCountable(draft: MeterDraft): boolean {
  if (draft.event_name.trim() === '') return false;
  if (draft.type === 'SUM_WITH_MULTIPLIER' && draft.multiplier === '') return false;
  return !hasValue(draft.type) || (draft.source === 'field' ? draft.field : draft.expression).trim() !== '';
}

export function buildMeterRequest(draft: MeterDraft) {
  const value = buildValue(draft);
  return {
    name: draft.name,
    event_name: draft.event_name,
    aggregation: {
      type: draft.type,
      field: value.property_name,
      expression: value.expression,
      multiplier: value.multiplier,
      bucket_size: value.bucket_size,
      group_by: value.group_by_property,
    },
    filters: listFilters(draft.filters),
    reset_usage: draft.reset_usage,
  };
}

export type TrialRange = { readonly start_time: string; readonly end_time: string };

/** The question "what would this meter have counted?", answered from the events themselves. */
export function buildTrial(draft: MeterDraft, range: TrialRange) {
  const filters = Object.fromEntries(listFilters(draft.filters).map(({ key, values }) => [key, values]));
  return {
    event_name: draft.event_name,
    aggregation_type: draft.type,
    ...buildValue(draft),
    ...(Object.keys(filters).length > 0 ? { filters } : {}),
    window_size: 'DAY' as const,
    ...range,
  };
}

/** All events that pass the filters, with or without a usable value. */
export function buildCountTrial(draft: MeterDraft, range: TrialRange) {
  return buildTrial({ ...draft, type: 'COUNT' }, range);
}

function buildValue(draft: MeterDraft) {
  const isMeasured = hasValue(draft.type);
  const isField = draft.source === 'field';
  return {
    property_name: isMeasured && isField ? draft.field : null,
    expression: isMeasured && !isField ? draft.expression : null,
    multiplier: draft.type === 'SUM_WITH_MULTIPLIER' ? draft.multiplier || null : null,
    bucket_size: canBucket(draft.type) ? draft.bucket_size || null : null,
    group_by_property: canGroup(draft) ? draft.group_by || null : null,
  };
}

/** A row of the form without a key is not a filter yet. */
export function listFilters(filters: readonly FilterDraft[]): { key: string; values: string[] }[] {
  return filters.filter(({ key }) => key !== '').map(({ key, values }) => ({ key, values: [...values] }));
}

/** The days up to now, from a midnight in UTC. */
export function findRange(now: Date, days: number): TrialRange {
  const midnight = Math.floor(now.getTime() / DAY_MS) * DAY_MS;
  return { start_time: new Date(midnight - (days - 1) * DAY_MS).toISOString(), end_time: now.toISOString() };
}

/** A point for each day of the range; over a day without events every aggregation is 0. */
export function fillDays(
  results: readonly { window_size: string; value: string }[],
  { start_time, end_time }: TrialRange,
): ChartPoint[] {
  const values = new Map(results.map(({ window_size, value }) => [new Date(window_size).getTime(), value]));
  const points: ChartPoint[] = [];
  for (let day = new Date(start_time).getTime(); day < new Date(end_time).getTime(); day += DAY_MS)
    points.push({ at: new Date(day).toISOString(), value: values.get(day) ?? '0' });
  return points;
}

export type ErrorPlace = { readonly line: number; readonly column: number };

/** The place that an error of the expression's parser names as `<input>:line:column:`; the column counts from 1. */
export function findErrorPlace(message: string): ErrorPlace | null {
  const [, line, column] = /<input>:(\d+):(\d+):/.exec(message) ?? [];
  return line && column ? { line: Number(line), column: Number(column) } : null;
}

/** The message without the names of fields and the place, which the reader sees drawn. */
export function shortenError(message: string): string {
  return message.replace(/^(?:aggregation\.)?expression: /, '').replace(/<input>:\d+:\d+: ?/, '');
}

/** The instant a microsecond later: the range that has the events of one instant alone. */
export function addMicrosecond(instant: string): string {
  const [, seconds = '', fraction = ''] = /^(.*?\d\d:\d\d:\d\d)(?:\.(\d+))?Z$/.exec(instant) ?? [];
  const next = BigInt(fraction.slice(0, 6).padEnd(6, '0')) + 1n;
  if (next === 1_000_000n) return new Date(new Date(`${seconds}Z`).getTime() + 1000).toISOString();
  return `${seconds}.${next.toString().padStart(6, '0')}Z`;
}
