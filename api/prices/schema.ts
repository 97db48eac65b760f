/** Requests and answers of prices. */
import { z } from 'zod';
import { meterShape } from '../../core/meter/record.ts';
import {
  billingPeriod,
  CRITICAL_FIELDS,
  type CriticalField,
  criticalFields,
  priceEntityType,
  priceShape,
} from '../../core/price/record.ts';
import { CreatePriceRequest } from '../../core/price/request.ts';
import { metadata, optionalKey, timestampText } from '../../core/record.ts';
import { AddonWithoutParts } from '../addons/answer.ts';
import { GroupAnswer } from '../groups/schema.ts';
import { flag, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';
import { PlanWithoutParts } from '../plans/answer.ts';
import { PriceUnitAnswer } from '../price-units/schema.ts';

const USAGE_PRICE_EXAMPLE = {
  entity_type: 'PLAN',
  entity_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
  type: 'USAGE',
  meter_id: 'meter_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
  billing_model: 'FLAT_FEE',
  amount: '0.25',
  currency: 'usd',
  billing_period: 'MONTHLY',
  invoice_cadence: 'ARREAR',
};

export const CreateBulkPriceRequest = z
  .object({
    items: z.array(CreatePriceRequest).min(1).max(100).meta({ description: 'All of them are made, or none.' }),
  })
  .meta({
    id: 'CreateBulkPriceRequest',
    example: {
      items: [USAGE_PRICE_EXAMPLE],
    },
  });

/** Null says as much as nothing for what a price must have to charge; what it may have besides, null clears. */
export const UpdatePriceRequest = z
  .object({
    lookup_key: optionalKey
      .optional()
      .meta({ description: 'A name of your own, of one price at a time; null clears it.' }),
    display_name: optionalKey.optional().meta({ description: 'What an invoice line is called; null clears it.' }),
    description: z.string().nullish().meta({ description: 'For people; null clears it.' }),
    metadata: metadata.unwrap().optional(),
    group_id: optionalKey
      .optional()
      .meta({ description: 'A group of prices that it belongs to; null takes it out of its group.' }),
    effective_from: timestampText.nullish().meta({
      description:
        'When the successor begins that a change of what is charged makes: now when absent, not before the price.',
    }),
    ...criticalFields,
    commitment_time_buckets: criticalFields.commitment_time_buckets.unwrap().optional(),
  })
  .meta({ id: 'UpdatePriceRequest', example: { display_name: 'Base fee' } });

/** What is charged and may be none. */
const CLEARABLE = 'commitment_time_buckets';

/** What the request states, as changes of the record. */
export function toPriceChanges({ effective_from: _effective, ...fields }: z.output<typeof UpdatePriceRequest>) {
  const critical: readonly string[] = CRITICAL_FIELDS;
  const entries = Object.entries(fields).filter(
    ([field, value]) => value !== undefined && (value !== null || !critical.includes(field) || field === CLEARABLE),
  );
  return Object.fromEntries(entries) as {
    [Field in keyof typeof fields]: Field extends Exclude<CriticalField, typeof CLEARABLE>
      ? NonNullable<(typeof fields)[Field]>
      : (typeof fields)[Field];
  };
}

export const DeletePriceRequest = z
  .object({
    end_date: timestampText.nullish().meta({ description: 'From when on it is not sold any more; now when absent.' }),
  })
  .nullish()
  .meta({ id: 'DeletePriceRequest', example: { end_date: '2030-01-01T00:00:00Z' } });

export const PriceFilter = listShape({
  price_ids: matchAny('prices'),
  billing_periods: z
    .preprocess((list) => (typeof list === 'string' ? list.split(',') : list), z.array(billingPeriod))
    .optional()
    .meta({ description: 'Any of these periods.' }),
  plan_ids: matchAny('plans, to which the price belongs'),
  entity_type: priceEntityType
    .optional()
    .meta({ description: 'Whether the price belongs to a plan, an add-on or a subscription.' }),
  entity_ids: matchAny('plans, add-ons or subscriptions, to which the price belongs'),
  subscription_id: z.string().optional().meta({ description: 'Prices that belong to this subscription.' }),
  parent_price_id: z.string().optional().meta({ description: 'Successors of this price, and overrides of it.' }),
  meter_ids: matchAny('meters, whose usage is priced'),
  allow_expired_prices: flag.default(false).meta({ description: 'Prices that have ended, too.' }),
  start_date_lt: timestampText.optional().meta({ description: 'Prices that begin before this instant.' }),
}).meta({ id: 'PriceFilter', example: { plan_ids: ['plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X'], limit: 10 } });
export type PriceFilter = z.output<typeof PriceFilter>;

export const priceGrammar: ListGrammar = {
  columns: {
    id: 'string',
    amount: 'number',
    currency: 'string',
    display_name: 'string',
    description: 'string',
    lookup_key: 'string',
    type: 'string',
    billing_model: 'string',
    billing_period: 'string',
    billing_period_count: 'number',
    billing_cadence: 'string',
    invoice_cadence: 'string',
    trial_period_days: 'number',
    meter_id: 'string',
    tier_mode: 'string',
    price_unit_type: 'string',
    entity_type: 'string',
    entity_id: 'string',
    group_id: 'string',
    parent_price_id: 'string',
    sequence: 'number',
    start_date: 'date',
    end_date: 'date',
    status: 'string',
    created_at: 'date',
    updated_at: 'date',
    created_by: 'string',
    updated_by: 'string',
  },
  expand: ['meters', 'priceunit', 'plan', 'addons', 'groups'],
};

/** `trial_period` is the published client's name of `trial_period_days`. */
export const PriceAnswer = priceShape
  .extend({
    trial_period: z.int().meta({ description: 'Another name of `trial_period_days`.' }),
    meter: meterShape.nullable().meta({ description: 'Where `expand` names it.' }),
    plan: PlanWithoutParts.nullable().meta({ description: 'Where `expand` names it.' }),
    addon: AddonWithoutParts.nullable().meta({ description: 'Where `expand` names it.' }),
    group: GroupAnswer.nullable().meta({ description: 'Where `expand` names groups.' }),
    pricing_unit: PriceUnitAnswer.nullable().meta({
      description: 'Of a CUSTOM price, where `expand` names priceunit.',
    }),
  })
  .meta({ id: 'PriceResponse' });

export const PriceListAnswer = listAnswer(PriceAnswer, 'ListPricesResponse');
export const BulkPriceAnswer = z
  .object({ items: z.array(PriceAnswer).meta({ description: 'The prices, in the order of the request.' }) })
  .meta({ id: 'CreateBulkPriceResponse' });
