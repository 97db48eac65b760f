import { z } from 'zod';
import {
  billingPeriod,
  CRITICAL_FIELDS,
  type CriticalField,
  createPriceShape,
  criticalFields,
  priceEntityType,
  priceShape,
} from '../../../core/catalog/price/record.ts';
import { CreatePriceRequest } from '../../../core/catalog/price/request.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { decimalText, metadata, optionalKey, timestampText } from '../../../core/foundation/record.ts';
import { meterShape } from '../../../core/metering/meter/record.ts';
import { flag, type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';
import { AddonWithoutParts } from '../addons/answer.ts';
import { GroupAnswer } from '../groups/schema.ts';
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
    items: z
      .array(CreatePriceRequest)
      .min(1)
      .max(100)
      .meta({ description: 'Prices to create, from 1 to 100. All are created, or none.' }),
  })
  .meta({
    id: 'CreateBulkPriceRequest',
    example: {
      items: [USAGE_PRICE_EXAMPLE],
    },
  });

/** For a field that a charge needs, null means unchanged; for an optional field, null clears it. */
export const UpdatePriceRequest = z
  .object({
    lookup_key: optionalKey
      .optional()
      .meta({ description: 'Your own name for the price, unique at any instant; null clears it.' }),
    display_name: optionalKey.optional().meta({ description: 'Name of the invoice line; null clears it.' }),
    description: z.string().nullish().meta({ description: 'Text for people; null clears it.' }),
    metadata: metadata.unwrap().optional(),
    group_id: optionalKey
      .optional()
      .meta({ description: 'Group of prices that this price joins; null removes it from its group.' }),
    effective_from: timestampText.nullish().meta({
      description:
        'Start of the successor that a change of the charge creates. Default now; refused before the start of the price.',
    }),
    ...criticalFields,
    commitment_time_buckets: criticalFields.commitment_time_buckets.unwrap().optional(),
  })
  .meta({ id: 'UpdatePriceRequest', example: { display_name: 'Base fee' } });

/** Name of the only charge field that null clears. */
const CLEARABLE = 'commitment_time_buckets';

/** Turns the request into changes of the record. */
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
    end_date: timestampText
      .nullish()
      .meta({ description: 'Instant from which the price is no longer sold. Default now.' }),
  })
  .nullish()
  .meta({ id: 'DeletePriceRequest', example: { end_date: '2030-01-01T00:00:00Z' } });

/** The owner, period and cadence of a price do not change the cost of a quantity, so a price may be costed before it has them. */
const CostedPrice = createPriceShape
  .partial({ entity_type: true, entity_id: true, billing_period: true, invoice_cadence: true })
  .meta({ id: 'CostedPriceRequest' });

export const PriceCostRequest = z
  .object({
    price_id: z.string().min(1).nullish().meta({ description: 'Id of a stored price. Refused together with `price`.' }),
    price: CostedPrice.nullish().meta({
      description:
        'Fields of a price that is not written. Its charge is checked as at creation; owner, period, cadence, dates and lookup key are optional and ignored.',
    }),
    quantities: z.array(decimalText).min(1).max(500).meta({
      description:
        'Quantities to price, from 1 to 500; with more than 40 tiers, fewer (20,000 / tiers). A negative one, and one below the `min_quantity` of a FIXED price, is refused.',
    }),
    at: timestampText.nullish().meta({
      description:
        'Instant of the usage, with times of day in UTC. Required for a price with `commitment_time_buckets`; ignored otherwise.',
    }),
  })
  .meta({
    id: 'PriceCostRequest',
    example: {
      price: {
        type: 'USAGE',
        billing_model: 'TIERED',
        tier_mode: 'SLAB',
        currency: 'usd',
        tiers: [
          { up_to: 1000, unit_amount: '0.10' },
          { unit_amount: '0.08', flat_amount: '5' },
        ],
      },
      quantities: ['1000', '2500'],
    },
  });

/** Returns the one price that the request names, or throws. */
export function toCostedPrice({ price_id, price }: z.output<typeof PriceCostRequest>) {
  if (price_id && price) throw invalid('price', 'contradicts price_id: give one of them');
  if (price_id) return { price_id };
  if (price) return { price };
  throw invalid('price_id', 'or a price is required');
}

const CostLine = z
  .object({
    from: decimalText.meta({
      description: 'The line has the units above this number: the end of the tier before, or 0.',
    }),
    up_to: decimalText.nullable().meta({ description: 'Last unit of the tier; null for the last tier or no tiers.' }),
    quantity: decimalText.meta({ description: 'Charged units of the line; packages for PACKAGE.' }),
    unit_amount: decimalText.meta({ description: 'Price of a unit or package, in units of the currency.' }),
    flat_amount: decimalText.nullable().meta({ description: 'Amount charged once for the tier; null if none.' }),
    amount: decimalText.meta({ description: 'Quantity × unit amount + flat amount, not rounded.' }),
  })
  .meta({ id: 'PriceCostLine' });

const PriceCost = z
  .object({
    quantity: decimalText.meta({ description: 'Quantity of the request.' }),
    amount: decimalText.meta({ description: 'Cost, not rounded: the sum of the lines, under the commitment of `at`.' }),
    amount_rounded: decimalText.meta({ description: 'Cost as an invoice line has it, rounded to the currency.' }),
    lines: z.array(CostLine).meta({ description: 'Tiers or packages that the quantity fills; empty if it is 0.' }),
  })
  .meta({ id: 'PriceCost' });

export const PriceCostAnswer = z
  .object({
    currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
    items: z.array(PriceCost).meta({ description: 'Costs in the order of the quantities.' }),
  })
  .meta({ id: 'PriceCostResponse' });

export const PriceFilter = listShape({
  price_ids: matchAny('prices'),
  billing_periods: z
    .preprocess((list) => (typeof list === 'string' ? list.split(',') : list), z.array(billingPeriod))
    .optional()
    .meta({ description: 'Matches any of these billing periods.' }),
  plan_ids: matchAny('plans that own the price'),
  entity_type: priceEntityType
    .optional()
    .meta({ description: 'Kind of record that owns the price: plan, add-on or subscription.' }),
  entity_ids: matchAny('plans, add-ons or subscriptions that own the price'),
  subscription_id: z.string().optional().meta({ description: 'Matches prices that belong to this subscription.' }),
  parent_price_id: z.string().optional().meta({ description: 'Matches successors and overrides of this price.' }),
  meter_ids: matchAny('meters whose usage is priced'),
  allow_expired_prices: flag
    .default(false)
    .meta({ description: 'True includes prices that have ended. Default false.' }),
  start_date_lt: timestampText.optional().meta({ description: 'Matches prices that begin before this instant.' }),
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
    trial_period: z.int().meta({ description: 'Alias of `trial_period_days`.' }),
    meter: meterShape.nullable().meta({ description: 'Present if `expand` names meters; else null.' }),
    plan: PlanWithoutParts.nullable().meta({ description: 'Present if `expand` names plan; else null.' }),
    addon: AddonWithoutParts.nullable().meta({ description: 'Present if `expand` names addons; else null.' }),
    group: GroupAnswer.nullable().meta({ description: 'Present if `expand` names groups; else null.' }),
    pricing_unit: PriceUnitAnswer.nullable().meta({
      description: 'Price unit of a CUSTOM price. Present if `expand` names priceunit; else null.',
    }),
  })
  .meta({ id: 'PriceResponse' });

export const PriceListAnswer = listAnswer(PriceAnswer, 'ListPricesResponse');
export const BulkPriceAnswer = z
  .object({ items: z.array(PriceAnswer).meta({ description: 'The prices, in the order of the request.' }) })
  .meta({ id: 'CreateBulkPriceResponse' });
