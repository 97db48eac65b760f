/**
 * Converts OpenTelemetry metrics to events: docs/rules/opentelemetry.md. A data point of a sum or a histogram with delta
 * temporality has the usage since the previous point, and becomes an event. One with cumulative temporality has the usage since its
 * start time; the last value of its series is known to the caller (cumulative.ts). Metrics that are not usage are rejected by name.
 */
import { z } from 'zod';
import { type CumulativePoint, findSeriesFault } from './cumulative.ts';

/**
 * Shapes of OTLP over HTTP in JSON, in the protocol's own spelling. Other keys are dropped, as the protocol requires. A
 * value and a metric keep all of their members: two values are equal only if all members are, and an unknown kind of
 * metric is reported.
 */
const Value = z.looseObject({
  stringValue: z.string().nullish(),
  boolValue: z.boolean().nullish(),
  intValue: z.union([z.string(), z.number()]).nullish(),
  doubleValue: z.union([z.number(), z.string()]).nullish(),
});
const Attribute = z.object({ key: z.string(), value: Value.nullish() });
type Attribute = z.output<typeof Attribute>;
const Point = z.object({
  attributes: z.array(Attribute).nullish(),
  startTimeUnixNano: z.union([z.string(), z.number()]).nullish(),
  timeUnixNano: z.union([z.string(), z.number()]).nullish(),
  asInt: z.union([z.string(), z.number()]).nullish(),
  asDouble: z.union([z.number(), z.string()]).nullish(),
  count: z.union([z.string(), z.number()]).nullish(),
  sum: z.union([z.number(), z.string()]).nullish(),
  flags: z.number().nullish(),
});
type Point = z.output<typeof Point>;
/** Rejects a key in the spelling of protocol buffers. `name` is the JSON spelling, and dropping the key would lose usage. */
const speltAs = (name: string) => z.undefined({ error: `must be spelt ${name}` }).optional();
const Points = z.object({
  dataPoints: z.array(Point).nullish(),
  data_points: speltAs('dataPoints'),
  aggregationTemporality: z.union([z.number(), z.string()]).nullish(),
  isMonotonic: z.boolean().nullish(),
});
const Metric = z.looseObject({
  name: z.string().nullish(),
  unit: z.string().nullish(),
  sum: Points.nullish(),
  histogram: Points.nullish(),
  exponentialHistogram: Points.nullish(),
  gauge: Points.nullish(),
  summary: Points.nullish(),
});
type Metric = z.output<typeof Metric>;
const Scope = z.object({
  name: z.string().nullish(),
  version: z.string().nullish(),
  attributes: z.array(Attribute).nullish(),
});
const ScopeMetrics = z.object({ scope: Scope.nullish(), metrics: z.array(Metric).nullish() });
const Resource = z.object({ attributes: z.array(Attribute).nullish() });
const ResourceMetrics = z.object({
  resource: Resource.nullish(),
  scopeMetrics: z.array(ScopeMetrics).nullish(),
  scope_metrics: speltAs('scopeMetrics'),
  instrumentationLibraryMetrics: speltAs('scopeMetrics'),
});
/** The caller rejects or reports other top-level keys. */
export const OtlpMetrics = z.object({
  resourceMetrics: z.array(ResourceMetrics).nullish(),
  resource_metrics: speltAs('resourceMetrics'),
});
export type OtlpMetrics = z.output<typeof OtlpMetrics>;

/** Identity of a point as JSON text in two parts: `common` is equal for all points of a resource and scope, and is built once for them. */
export type Identity = { readonly common: string; readonly own: string };

/** A future event; `identity` is unique to this point of the stream, and the event id is derived from it. */
export type PointEvent = {
  readonly identity: Identity;
  readonly fields: {
    readonly event_name: string;
    readonly external_customer_id: string;
    readonly timestamp: string;
    readonly source?: string;
  };
  /** Values as JSON text, so that numbers keep their digits. `count` is that of a histogram. */
  readonly value: string;
  readonly count: string | null;
  /** Members of the other properties as JSON text. */
  readonly attributes: readonly string[];
  /** Series and times of a cumulative point; null for a delta. */
  readonly cumulative: (Pick<CumulativePoint, 'start_nano' | 'time_nano'> & { readonly series: string }) | null;
};

/** JSON text of the properties of an event. */
export function formatProperties({
  value,
  count,
  attributes,
}: Pick<PointEvent, 'value' | 'count' | 'attributes'>): string {
  const counted = count === null ? [] : [member('count', count)];
  return `{${[member('value', value), ...counted, ...attributes].join(',')}}`;
}

export type PointFault = { readonly metric: string; readonly why: string };

/** Returns the events and the faults in the order of the points. Points flagged as having no value give neither. */
export function fromOtlpMetrics({ resourceMetrics }: OtlpMetrics): { events: PointEvent[]; faults: PointFault[] } {
  const events: PointEvent[] = [];
  const faults: PointFault[] = [];
  for (const { resource, scopeMetrics } of resourceMetrics ?? []) {
    const about = resource?.attributes ?? [];
    const customer = findText(about, CUSTOMER);
    const source = findText(about, SERVICE);
    const of_resource = listed(about);
    for (const { scope, metrics } of scopeMetrics ?? []) {
      const of_scope = listed(scope?.attributes ?? []);
      const whose = [of_resource, scope?.name ?? '', scope?.version ?? '', ...(of_scope.length > 0 ? [of_scope] : [])];
      const series = JSON.stringify([
        canonical(about),
        scope?.name ?? '',
        scope?.version ?? '',
        canonical(scope?.attributes ?? []),
      ]);
      const origin = { customer, source, common: `${JSON.stringify(whose).slice(0, -1)},`, series };
      for (const metric of metrics ?? []) readMetric(metric, origin, { events, faults });
    }
  }
  return { events, faults };
}

/** Values of a resource and a scope that apply to each of their points. */
type Origin = {
  readonly customer: string | undefined;
  readonly source: string | undefined;
  readonly common: string;
  readonly series: string;
};
type OtlpReading = { readonly events: PointEvent[]; readonly faults: PointFault[] };

function readMetric(metric: Metric, origin: Origin, { events, faults }: OtlpReading): void {
  const name = metric.name ?? '';
  const kind = KINDS.find((one) => metric[one]);
  if (kind === undefined) return readUnknown(metric, faults);
  const why = findMetricFault(metric, kind);
  const isCumulative = CUMULATIVE.includes(metric[kind]!.aggregationTemporality as never);
  for (const point of metric[kind]!.dataPoints ?? []) {
    if (((point.flags ?? 0) & NO_VALUE) !== 0) continue;
    const event = why ?? toPointEvent(point, { name, unit: metric.unit ?? '', kind, isCumulative }, origin);
    if (typeof event === 'string') faults.push({ metric: name, why: event });
    else events.push(event);
  }
}

/** Adds a fault for each point of a metric of an unknown kind; a metric without points adds none. */
function readUnknown({ name, ...metric }: Metric, faults: PointFault[]): void {
  for (const [key, kind] of Object.entries(metric)) {
    const points = countPoints(kind);
    for (let index = 0; index < points; index++)
      faults.push({ metric: name ?? '', why: `${key} is no kind of metric: only sum and histogram are taken` });
  }
}

/** Counts points in either spelling of the key. */
function countPoints(kind: unknown): number {
  const { dataPoints, data_points } = Object(kind) as Readonly<Record<string, unknown>>;
  const points = dataPoints ?? data_points;
  return Array.isArray(points) ? points.length : 0;
}

const KINDS = ['sum', 'histogram', 'exponentialHistogram', 'gauge', 'summary'] as const;
/** Flag of a data point without a value (`DataPointFlags` of the protocol). */
const NO_VALUE = 1;
const DELTA = [1, 'AGGREGATION_TEMPORALITY_DELTA'];
const CUMULATIVE = [2, 'AGGREGATION_TEMPORALITY_CUMULATIVE'];

function findMetricFault({ name, ...metric }: Metric, kind: (typeof KINDS)[number]): string | undefined {
  if ((name ?? '').trim() === '') return 'name is required';
  if (kind === 'gauge' || kind === 'summary') return `a ${kind} says no usage: only sums and histograms are taken`;
  const { aggregationTemporality, isMonotonic } = metric[kind]!;
  if (![...DELTA, ...CUMULATIVE].includes(aggregationTemporality as never))
    return 'aggregationTemporality must be delta or cumulative';
  if (kind === 'sum' && isMonotonic !== true) return 'a sum that may fall is a level and says no usage';
  return undefined;
}

const CUSTOMER = 'external_customer_id';
const SERVICE = 'service.name';
const OURS = ['value', 'count'];

type PointMetric = {
  readonly name: string;
  readonly unit: string;
  readonly kind: (typeof KINDS)[number];
  readonly isCumulative: boolean;
};

function toPointEvent(point: Point, { name, unit, kind, isCumulative }: PointMetric, of: Origin): PointEvent | string {
  const own = point.attributes ?? [];
  const customer = findText(own, CUSTOMER) ?? of.customer;
  if (customer === undefined || customer.trim() === '') return `the attribute ${CUSTOMER} is required`;
  const taken = own.find(({ key }) => OURS.includes(key));
  if (taken) return `the attribute ${taken.key} has the name of what is measured`;
  const timestamp = instantText(point.timeUnixNano);
  if (timestamp === undefined) return 'timeUnixNano is required';
  const measured = readMeasurements(point, kind !== 'sum');
  if (typeof measured === 'string') return measured;
  const attributes: string[] = [];
  for (const { key, value } of own) {
    const text = toJson(value);
    if (text === undefined) return `the attribute ${key} must be a text, a number or a boolean`;
    if (key !== CUSTOMER) attributes.push(member(key, text));
  }
  const { source } = of;
  // Metrics of one name and another kind or unit are separate streams, whose values must not be subtracted.
  const stream = isCumulative ? [kind, unit] : [];
  const identityParts = [name, listed(own), `${point.startTimeUnixNano}`, `${point.timeUnixNano}`, ...stream];
  const cumulative = isCumulative ? toSeries(point, [of.series, name, ...stream, canonical(own)]) : null;
  const why = cumulative && findSeriesFault({ ...cumulative, ...measured });
  if (why) return why;
  return {
    identity: { common: of.common, own: JSON.stringify(identityParts).slice(1) },
    fields: {
      event_name: name,
      external_customer_id: customer,
      timestamp,
      ...(source === undefined ? {} : { source }),
    },
    ...measured,
    attributes,
    cumulative,
  };
}

const member = (key: string, json: string) => `${JSON.stringify(key)}:${json}`;

/** The start time is part of a series: two processes with equal attributes are two, unless they began in one nanosecond. */
function toSeries({ startTimeUnixNano, timeUnixNano }: Point, parts: readonly unknown[]) {
  const start_nano = BigInt(wholeText(startTimeUnixNano) ?? 0);
  const time_nano = BigInt(wholeText(timeUnixNano) ?? 0);
  return { series: JSON.stringify([...parts, start_nano.toString()]), start_nano, time_nano };
}

/** Reads the value of a point. The value of a histogram is its sum, with the number of measurements as `count`. */
function readMeasurements(
  { asInt, asDouble, sum, count }: Point,
  isHistogram: boolean,
): Pick<PointEvent, 'value' | 'count'> | string {
  // Protocol buffers omit a count of 0, and then the sum is 0.
  const isEmpty = !isPresent(count) && Number(sum ?? 0) === 0;
  const total = isEmpty ? 0 : sum;
  const value = isHistogram ? numberText(total) : isPresent(asInt) ? wholeText(asInt) : numberText(asDouble);
  if (value === undefined) return isHistogram ? 'sum must be a number' : 'asInt or asDouble must be a number';
  // Usage never falls, so the value of a sum is not below 0. For a histogram with measurements below 0 the protocol has no sum.
  if (value.startsWith('-')) return 'a value below 0 is no usage: what only grows has none';
  if (!isHistogram) return { value, count: null };
  const measurements = wholeText(isEmpty ? 0 : count);
  return measurements === undefined ? 'count must be a whole number' : { value, count: measurements };
}

function isPresent<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined;
}

/** Formats a 64-bit integer, which arrives as text. Undefined for a JSON number of that size, which has already lost digits. */
function wholeText(value: string | number | null | undefined): string | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === 'string' && /^-?\d{1,20}$/.test(value) ? BigInt(value).toString() : undefined;
}

function numberText(value: number | string | null | undefined): string | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? JSON.stringify(number) : undefined;
}

function toJson(value: Attribute['value']): string | undefined {
  if (!value) return undefined;
  const { stringValue, boolValue, intValue, doubleValue } = value;
  if (isPresent(stringValue)) return JSON.stringify(stringValue);
  if (isPresent(boolValue)) return String(boolValue);
  return isPresent(intValue) ? wholeText(intValue) : numberText(doubleValue);
}

function findText(attributes: readonly Attribute[], key: string): string | undefined {
  const value = attributes.find((one) => one.key === key)?.value;
  const json = toJson(value);
  return json === undefined ? undefined : (value?.stringValue ?? json);
}

/** Lists the attributes in sorted order, so that the sender's order does not matter. */
function listed(attributes: readonly Attribute[]): string[] {
  return attributes.map(({ key, value }) => JSON.stringify([key, value])).sort();
}

/** Lists the attributes alike in JSON and protobuf, so that a sender may change its encoding within a series. */
function canonical(attributes: readonly Attribute[]): string[] {
  return attributes.map(({ key, value }) => JSON.stringify([key, toJson(value) ?? value ?? null])).sort();
}

const NANOSECONDS = 1_000_000_000n;

/** RFC 3339 with nine fractional digits of the second; an instant of zero counts as absent. */
function instantText(nano: string | number | null | undefined): string | undefined {
  const text = wholeText(nano);
  // A sender's clock is never before 1970 or after the year 2254.
  if (text === undefined || !/^\d{1,19}$/.test(text) || text === '0') return undefined;
  const whole = BigInt(text);
  const second = new Date(Number(whole / NANOSECONDS) * 1000).toISOString().slice(0, 19);
  return `${second}.${(whole % NANOSECONDS).toString().padStart(9, '0')}Z`;
}
