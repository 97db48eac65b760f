/** Turns a query without a meter into a meter that is not stored. The rows of a stored meter with the same definition can answer it. */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import { AGGREGATIONS } from '../../../core/metering/aggregations/index.ts';
import { compileNewExpression } from '../../../core/metering/expression.ts';
import type { Aggregation, AggregationType, Meter } from '../../../core/metering/meter/record.ts';
import { checkMeter } from '../../../core/metering/meter/record.ts';
import type { MeterDefinition } from '../../../core/metering/meter-definition.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import type { Context } from '../../http/route.ts';

type TransientMeterQuery = {
  event_name: string;
  aggregation_type: AggregationType;
  property_name: string | null;
  multiplier: string | null;
  bucket_size: Aggregation['bucket_size'];
  group_by: string | null;
  expression: string | null;
  filters: Readonly<Record<string, string[]>> | null;
};

/** Checks the query by the rules of a meter; an error names the field of the request. */
export function buildTransientMeter(query: TransientMeterQuery): MeterDefinition {
  const aggregation: Aggregation = {
    type: query.aggregation_type,
    field: query.property_name,
    expression: query.expression,
    multiplier: query.multiplier,
    bucket_size: query.bucket_size,
    group_by: query.group_by,
  };
  const filters = Object.entries(query.filters ?? {}).map(([key, values]) => ({ key, values }));
  const event_name = query.event_name.trim();
  const candidate = { name: 'a question', event_name, aggregation, filters, reset_usage: 'BILLING_PERIOD' as const };
  try {
    checkMeter(candidate, compileNewExpression);
  } catch (error) {
    throw toRequestFieldError(error);
  }
  return { id: 'a question', ...candidate };
}

/** Aggregates the events of a meter by another type; fields that only its own type accepts are dropped. */
export function withAggregationType(meter: Meter, type: AggregationType): MeterDefinition {
  const { id, event_name, filters, aggregation } = meter;
  const { field, expression, bucket_size } = aggregation;
  const requested = { event_name, aggregation_type: type, property_name: field, expression };
  const takesBuckets = AGGREGATIONS[type].takes.includes('bucket_size');
  const definition = buildTransientMeter({
    ...requested,
    multiplier: null,
    bucket_size: takesBuckets ? bucket_size : null,
    group_by: null,
    filters: null,
  });
  return { ...definition, id, filters };
}

const FIELD_OF_REQUEST: Record<string, string> = {
  'aggregation.field': 'property_name',
  'aggregation.type': 'aggregation_type',
};

function toRequestFieldError(error: unknown): unknown {
  const field = error instanceof FarthingError ? error.details?.['field'] : undefined;
  if (!(error instanceof FarthingError) || typeof field !== 'string') return error;
  const requested = FIELD_OF_REQUEST[field] ?? field.replace('aggregation.', '');
  return new FarthingError(error.code, error.message.replace(field, requested), {
    details: { ...error.details, field: requested },
  });
}

/** Finds a published meter with exactly this definition; a live one is preferred. */
export async function findEquivalentMeter(
  definition: MeterDefinition,
  { scope, services }: Context,
): Promise<MeterModel | undefined> {
  const { event_name } = definition;
  const meters = await MeterModel.in(scope, services.postgres)
    .where({ event_name, status: 'published' })
    .orderBy(['created_at', 'id']);
  const wanted = signature(definition);
  const alike = meters.filter((meter) => signature(meter) === wanted);
  return alike.find((meter) => meter.state === 'live') ?? alike[0];
}

/** Text that is equal for meters that count the same events with the same values. */
function signature({ aggregation, filters }: Pick<MeterDefinition, 'aggregation' | 'filters'>): string {
  const { type, field, expression, multiplier, bucket_size, group_by } = aggregation;
  const value =
    AGGREGATIONS[type].value_kind === 'none' ? null : expression ? ['expression', expression] : ['field', field];
  const accepted = filters.map(({ key, values }) => [key, [...new Set(values)].sort()] as const);
  accepted.sort(([a], [b]) => (a < b ? -1 : 1));
  const factor = multiplier ? new Decimal(multiplier).toFixed() : null;
  return JSON.stringify([type, value, factor, bucket_size || null, group_by || null, accepted]);
}
