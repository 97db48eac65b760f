/**
 * A price: the cost of a unit, package or tier, its frequency and its billing. This file has the rules of a single
 * price (docs/rules/pricing.md, "What a price must state"). The rules of each price model, and the pricing of a
 * quantity, are in `core/catalog/pricing/`.
 */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { checkCurrency, displayAmount } from '../../foundation/money.ts';
import {
  allOrNull,
  anyCase,
  baseFields,
  decimalText,
  description,
  int32,
  keyText,
  metadata,
  optionalKey,
  orDefault,
  orNull,
  timestampText,
  toEnumValues,
  wholeNumber,
} from '../../foundation/record.ts';
import { requireInstant } from '../../foundation/time/instant.ts';
import { RECURRING_PERIODS } from '../../foundation/time/period.ts';
import { checkNotNegative } from '../pricing/amount.ts';
import { checkModel, isChargedBy } from '../pricing/charge.ts';
import { type BillingModel, PRICE_MODELS, type TierMode } from '../pricing/index.ts';
import { modelFields, type PricingModel, tierShape } from '../pricing/terms.ts';
import { checkTiers, sortTiers } from '../pricing/tiers.ts';
import { timeBucketsShape } from './time-buckets.ts';

const PRICE_TYPES = ['USAGE', 'FIXED'] as const;
const BILLING_PERIODS = [...RECURRING_PERIODS, 'ONETIME'] as const;
const BILLING_CADENCES = ['RECURRING'] as const;
const INVOICE_CADENCES = ['ARREAR', 'ADVANCE'] as const;
const PRICE_UNIT_TYPES = ['FIAT', 'CUSTOM'] as const;
const PRICE_ENTITY_TYPES = ['PLAN', 'SUBSCRIPTION', 'ADDON', 'PRICE', 'COSTSHEET'] as const;

export const priceType = anyCase(PRICE_TYPES);
/** The registry of price models defines the accepted values. */
const billingModel = anyCase(toEnumValues(byWord<BillingModel>((model) => model.billing_model)));
const billingTier = anyCase(toEnumValues(byWord<TierMode>((model) => model.tier_mode)));
export const billingPeriod = anyCase(BILLING_PERIODS);
export const invoiceCadence = anyCase(INVOICE_CADENCES);
export const priceEntityType = anyCase(PRICE_ENTITY_TYPES);
export type BillingPeriod = (typeof BILLING_PERIODS)[number];

/** Fields beside the billing model that determine the charge. */
const chargedShapes = {
  tier_mode: billingTier.meta({
    description:
      'Tier mode of a TIERED price. With VOLUME all units have the price of the last unit’s tier; with SLAB each unit has the price of its own tier.',
  }),
  ...modelFields,
};
export type ChargedField = keyof typeof chargedShapes;
export const CHARGED_FIELDS = Object.keys(chargedShapes) as ChargedField[];

const ofCustom = (what: string) => ({ description: `${what} Only of a CUSTOM price.` });

/** Fields of a CUSTOM price for its price unit. A FIAT price has none. */
const unitFields = allOrNull({
  price_unit: z.string().meta(ofCustom('Code of the price unit.')),
  price_unit_id: z.string().meta(ofCustom('Id of the price unit.')),
  price_unit_amount: decimalText.meta(ofCustom('Amount in the price unit; `amount` is its value in money.')),
  display_price_unit_amount: z.string().meta(ofCustom('Amount in the price unit, in display form.')),
  price_unit_tiers: z.array(tierShape).meta(ofCustom('Tiers in the price unit; `tiers` has their values in money.')),
  conversion_rate: decimalText.meta(ofCustom('Money value of one price unit when the price was created.')),
});
export type UnitField = keyof typeof unitFields;
export const UNIT_FIELDS = Object.keys(unitFields) as UnitField[];

const timeBuckets = timeBucketsShape.meta({
  description:
    'Times of day with their own commitment and price, for a USAGE price whose meter has a bucket_size of a day at most. Default: none. Refused on a subscription with a `commitment_amount`.',
});

/**
 * A change of one of these fields ends the price and starts a successor. Any other field changes in place
 * (docs/rules/pricing.md, "Changing a price").
 */
export const criticalFields = {
  ...allOrNull({
    billing_model: billingModel.meta({
      description: 'Billing model. A new model requires the fields that it charges by.',
    }),
    ...chargedShapes,
  }),
  price_unit_amount: unitFields.price_unit_amount,
  price_unit_tiers: unitFields.price_unit_tiers,
  commitment_time_buckets: orNull(timeBuckets),
};
export type CriticalField = keyof typeof criticalFields;
export const CRITICAL_FIELDS = Object.keys(criticalFields) as CriticalField[];

/** Fields of a request in their stored form. Create requests, update requests and the record share them. */
const requestedFields = {
  currency: z.string().meta({ description: 'Currency code (ISO 4217), case-insensitive.' }),
  type: priceType.meta({
    description: 'Type of the price. USAGE is measured by a meter; FIXED has the quantity of the subscription.',
  }),
  billing_model: billingModel.meta({
    description:
      'Billing model. With FLAT_FEE each unit costs the amount, with PACKAGE each package; TIERED charges by its tiers.',
  }),
  ...allOrNull(chargedShapes),
  billing_period: billingPeriod.meta({
    description:
      'Unit of the billing period. A period is `billing_period_count` of these units long. ONETIME is charged once.',
  }),
  billing_period_count: orDefault(int32, 1).meta({ description: 'Number of units in a billing period. Default: 1.' }),
  billing_cadence: orDefault(anyCase(BILLING_CADENCES), 'RECURRING').meta({
    description: 'Every price is RECURRING. Default: RECURRING.',
  }),
  invoice_cadence: invoiceCadence.meta({
    description:
      'ARREAR is billed after the period, ADVANCE before it. A USAGE price requires ARREAR, a ONETIME price ADVANCE.',
  }),
  meter_id: orNull(z.string()).meta({ description: 'Meter of a USAGE price, which requires one.' }),
  min_quantity: orNull(decimalText).meta({
    description: 'Default and smallest quantity of a FIXED price on a subscription. It is refused for a USAGE price.',
  }),
  price_unit_type: orDefault(anyCase(PRICE_UNIT_TYPES), 'FIAT').meta({
    description:
      'Unit of the amounts. FIAT is money; CUSTOM is a price unit, with amounts in `price_unit_config`. Default: FIAT.',
  }),
  display_name: orNull(keyText).meta({ description: 'Description of invoice lines.' }),
  description,
  lookup_key: optionalKey
    .default(null)
    .meta({ description: 'Your own name, unique among prices that have not ended.' }),
  group_id: orNull(z.string()).meta({ description: 'Group of prices that the price belongs to.' }),
  start_date: orNull(timestampText).meta({ description: 'Instant from which the price is sold. Default: now.' }),
  end_date: orNull(timestampText).meta({ description: 'Exclusive end. Default: no end.' }),
  commitment_time_buckets: orNull(timeBuckets),
  metadata,
};

export const priceShape = z.object({
  id: z.string(),
  ...requestedFields,
  amount: decimalText.meta({
    description: 'Price of a unit or package in currency units, as decimal text. TIERED does not use it.',
  }),
  display_amount: z.string().meta({ description: 'Amount in display form, such as $20.' }),
  trial_period_days: orDefault(int32, 0).meta({
    description:
      'Trial days of a subscription whose request has none. Only recurring FIXED prices may have them. Default: 0.',
  }),
  ...unitFields,
  entity_type: orNull(priceEntityType).meta({
    description: 'Kind of owner: PLAN, ADDON, SUBSCRIPTION or COSTSHEET.',
  }),
  entity_id: orNull(z.string()).meta({
    description: 'Id of the plan, add-on, subscription or cost sheet that owns the price.',
  }),
  parent_price_id: z.string().default('').meta({
    description:
      'First price in the series of successors that this price belongs to, or the plan’s price that it overrides; else empty.',
  }),
  sequence: wholeNumber.meta({
    description: 'Sequence number among the prices of the owner, in order of creation: 1, 2, 3 ….',
  }),
  ...baseFields,
});
export type Price = z.output<typeof priceShape>;

const priceUnitConfigShape = z.object({
  price_unit: z.string().meta({ description: 'Code of a published price unit.' }),
  amount: orNull(decimalText).meta({
    description: 'Price of a unit or package, in the price unit. TIERED does not use it.',
  }),
  price_unit_tiers: orNull(z.array(tierShape)).meta({ description: 'Tiers of a TIERED price, in the price unit.' }),
});

export const createPriceShape = z.object({
  ...requestedFields,
  entity_type: priceEntityType.meta({
    description: 'Kind of owner: PLAN, ADDON, SUBSCRIPTION or COSTSHEET.',
  }),
  entity_id: z
    .string()
    .meta({ description: 'Id of the plan, add-on, subscription or cost sheet that owns the price.' }),
  trial_period_days: orNull(int32).meta({
    description:
      'Trial days of a subscription whose request has none. Only recurring FIXED prices may have them. Default: 0.',
  }),
  // Name of trial_period_days in the published client.
  trial_period: orNull(int32).meta({ description: 'Alternative name of `trial_period_days`.' }),
  price_unit_config: orNull(priceUnitConfigShape).meta({
    description: 'Amounts of a CUSTOM price in its price unit. Required for CUSTOM, refused for FIAT.',
  }),
  filter_values: orNull(z.record(z.string(), z.array(z.string()))).meta({
    description: 'A value with content is refused, because filters belong to the meter.',
  }),
});
export type CreatePrice = z.output<typeof createPriceShape>;

/** A complete and validated price, before it has an id, a sequence and an owner. */
export type PriceDefinition = Omit<Price, 'id' | 'sequence' | keyof typeof baseFields>;

/** The fields of a price that determine its charge for a quantity. */
export type ChargeDefinition = Pick<
  PriceDefinition,
  'type' | 'currency' | 'billing_model' | ChargedField | 'min_quantity' | 'price_unit_type' | UnitField
>;

export type RequestedCharge = { readonly [Field in 'billing_model' | ChargedField]?: Price[Field] | null };

/** Replaces the charge fields that the request sets. A null field stays unchanged. */
export function replaceCharge<Priced extends PriceDefinition>(price: Priced, requested: RequestedCharge): Priced {
  const fields = ['billing_model', ...CHARGED_FIELDS] as const;
  const charge = Object.fromEntries(fields.map((field) => [field, requested[field] ?? price[field]]));
  const changed = { ...price, ...charge };
  const tiers = changed.tiers === null ? null : sortTiers(changed.tiers);
  return { ...changed, tiers, display_amount: displayAmount(changed.amount, price.currency) };
}

/** Checks the rules of a single price, also after an override or an update. */
export function checkPrice(price: PriceDefinition): void {
  checkCurrency(price.currency);
  checkCharge(price);
  if (price.billing_period === 'ONETIME') checkOnetime(price);
  else if (price.billing_period_count < 1) throw invalid('billing_period_count', 'must be at least 1');
  checkTrial(price);
  checkTerms(price);
  checkDates(price);
}

/** Checks the rules of the charge alone. */
export function checkTerms(price: ChargeDefinition): void {
  checkMinQuantity(price);
  checkNotNegative('amount', price.amount);
  checkUnitTiers(price);
  checkModel(price);
  checkUnitFields(price);
}

/** Checks the fields that depend on the type. Usage is billed in arrears, because it is known only after the period. */
function checkCharge(price: PriceDefinition): void {
  if (price.type !== 'USAGE') {
    if (price.commitment_time_buckets?.length) throw invalid('commitment_time_buckets', 'is for USAGE prices only');
    return;
  }
  if (price.invoice_cadence !== 'ARREAR') throw invalid('invoice_cadence', 'must be ARREAR for a USAGE price');
  if (!price.meter_id) throw invalid('meter_id', 'is required for a USAGE price');
}

function checkOnetime(price: PriceDefinition): void {
  if (price.type !== 'FIXED') throw invalid('type', 'must be FIXED for a ONETIME price');
  if (price.invoice_cadence !== 'ADVANCE') throw invalid('invoice_cadence', 'must be ADVANCE for a ONETIME price');
}

/** Checks the trial. Only recurring FIXED prices may have one (docs/rules/pricing.md, "What a price must state"). */
function checkTrial(price: PriceDefinition): void {
  if (price.trial_period_days < 0) throw invalid('trial_period_days', 'must not be negative');
  if (price.trial_period_days === 0) return;
  if (price.type !== 'FIXED' || price.billing_period === 'ONETIME')
    throw invalid('trial_period_days', 'is allowed for recurring FIXED prices only');
}

function checkMinQuantity({ type, min_quantity }: ChargeDefinition): void {
  if (min_quantity === null) return;
  if (type === 'USAGE') throw invalid('min_quantity', 'is not allowed for a USAGE price');
  checkNotNegative('min_quantity', min_quantity);
}

function checkUnitTiers(price: ChargeDefinition): void {
  if (price.price_unit_type === 'CUSTOM' && isChargedBy(price.billing_model, 'tiers'))
    checkTiers('price_unit_config.price_unit_tiers', price.price_unit_tiers);
}

function checkUnitFields(price: ChargeDefinition): void {
  if (price.price_unit_type === 'FIAT') {
    if (UNIT_FIELDS.some((field) => price[field] !== null))
      throw invalid('price_unit_type', 'a FIAT price may not carry price unit fields');
    return;
  }
  if (price.price_unit_id === null || price.conversion_rate === null)
    throw invalid('price_unit_config', 'is required for a CUSTOM price');
  if (!new Decimal(price.conversion_rate).gt(0)) throw invalid('conversion_rate', 'must be greater than 0');
}

function checkDates({ start_date, end_date }: PriceDefinition): void {
  if (start_date === null || end_date === null) return;
  if (requireInstant('start_date', start_date) > requireInstant('end_date', end_date))
    throw invalid('end_date', 'must not lie before start_date');
}

function byWord<Word extends string>(toWord: (model: PricingModel) => string | null): Record<Word, PricingModel> {
  const entries = PRICE_MODELS.map((model) => [toWord(model), model] as const);
  return Object.fromEntries(entries.filter(([word]) => word !== null)) as Record<Word, PricingModel>;
}
