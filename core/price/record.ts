/**
 * A price: what one unit, package or tier of something costs, how often and when it is billed. Here are the rules of a
 * price alone (docs/rules/pricing.md, "What a price must state"); what its model asks of it, and how a quantity
 * is priced, is in `core/pricing/`.
 */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import { checkCurrency, displayAmount, parseDecimal, withSymbol } from '../money.ts';
import { checkNotNegative } from '../pricing/amount.ts';
import { checkCharged, checkModel, isChargedBy } from '../pricing/charge.ts';
import { type BillingModel, PRICE_MODELS, type TierMode } from '../pricing/index.ts';
import { priceUnitToFiat } from '../pricing/price-unit.ts';
import { modelFields, type PriceTier, type PricingModel, tierShape } from '../pricing/terms.ts';
import { checkTiers, sortTiers } from '../pricing/tiers.ts';
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
} from '../record.ts';
import { requireInstant } from '../time/instant.ts';
import { RECURRING_PERIODS } from '../time/period.ts';
import { timeBucketsShape } from './time-buckets.ts';

export const PRICE_TYPES = ['USAGE', 'FIXED'] as const;
export const BILLING_PERIODS = [...RECURRING_PERIODS, 'ONETIME'] as const;
export const BILLING_CADENCES = ['RECURRING'] as const;
export const INVOICE_CADENCES = ['ARREAR', 'ADVANCE'] as const;
export const PRICE_UNIT_TYPES = ['FIAT', 'CUSTOM'] as const;
export const PRICE_ENTITY_TYPES = ['PLAN', 'SUBSCRIPTION', 'ADDON', 'PRICE', 'COSTSHEET'] as const;

export const priceType = anyCase(PRICE_TYPES);
/** What may be said is what the registry of price models lists. */
const billingModel = anyCase(toEnumValues(byWord<BillingModel>((model) => model.billing_model)));
const billingTier = anyCase(toEnumValues(byWord<TierMode>((model) => model.tier_mode)));
export const billingPeriod = anyCase(BILLING_PERIODS);
export const invoiceCadence = anyCase(INVOICE_CADENCES);
export const priceEntityType = anyCase(PRICE_ENTITY_TYPES);
export type BillingPeriod = (typeof BILLING_PERIODS)[number];

/** What decides what a price costs, beside its billing model. */
const chargedShapes = {
  tier_mode: billingTier.meta({
    description:
      'Of TIERED. VOLUME: all units cost what the tier of the last one says; SLAB: each what its own tier says.',
  }),
  ...modelFields,
};
export type ChargedField = keyof typeof chargedShapes;
export const CHARGED_FIELDS = Object.keys(chargedShapes) as ChargedField[];

const ofCustom = (what: string) => ({ description: `Of a CUSTOM price: ${what}` });

/** What a CUSTOM price carries of its price unit, and no FIAT one. */
const unitFields = allOrNull({
  price_unit: z.string().meta(ofCustom('the code of its price unit.')),
  price_unit_id: z.string().meta(ofCustom('the id of its price unit.')),
  price_unit_amount: decimalText.meta(ofCustom('its amount in the price unit; `amount` is what that is in money.')),
  display_price_unit_amount: z.string().meta(ofCustom('that amount as people write it.')),
  price_unit_tiers: z
    .array(tierShape)
    .meta(ofCustom('its tiers in the price unit; `tiers` are what they are in money.')),
  conversion_rate: decimalText.meta(ofCustom('what one of the unit is in money; that of the unit when it was made.')),
});
type UnitField = keyof typeof unitFields;
const UNIT_FIELDS = Object.keys(unitFields) as UnitField[];

const timeBuckets = timeBucketsShape.meta({
  description:
    'Times of day with a commitment of their own, of a USAGE price whose meter has a bucket_size. Kept and checked; a subscription to such a price is refused until commitments are charged.',
});

/**
 * A change of one of these ends the price and starts a successor; everything else changes in place
 * (docs/rules/pricing.md, "Changing a price").
 */
export const criticalFields = {
  ...allOrNull({
    billing_model: billingModel.meta({ description: 'Another one needs what it charges by to be stated.' }),
    ...chargedShapes,
  }),
  price_unit_amount: unitFields.price_unit_amount,
  price_unit_tiers: unitFields.price_unit_tiers,
  commitment_time_buckets: orNull(timeBuckets),
};
export type CriticalField = keyof typeof criticalFields;
export const CRITICAL_FIELDS = Object.keys(criticalFields) as CriticalField[];

/** What a client may state as it is stored; create and update requests and the record share it. */
const requestedFields = {
  currency: z.string().meta({ description: 'As ISO 4217 has it, in any case.' }),
  type: priceType.meta({ description: 'USAGE is measured by a meter, FIXED is stated by the subscription.' }),
  billing_model: billingModel.meta({
    description: 'FLAT_FEE: each unit costs the amount; PACKAGE: each package does; TIERED: by the tiers.',
  }),
  ...allOrNull(chargedShapes),
  billing_period: billingPeriod.meta({
    description: 'How long a period is, times `billing_period_count`; ONETIME is charged once.',
  }),
  billing_period_count: orDefault(int32, 1).meta({ description: 'How many of these make a period.' }),
  billing_cadence: orDefault(anyCase(BILLING_CADENCES), 'RECURRING').meta({ description: 'Every price is RECURRING.' }),
  invoice_cadence: invoiceCadence.meta({ description: 'ARREAR is billed after the period, ADVANCE before it.' }),
  meter_id: orNull(z.string()).meta({ description: 'The meter of a USAGE price.' }),
  min_quantity: orNull(decimalText).meta({
    description: 'The quantity of a FIXED price where a subscription states none; it may not state less.',
  }),
  price_unit_type: orDefault(anyCase(PRICE_UNIT_TYPES), 'FIAT').meta({
    description: 'FIAT is money; the amounts of CUSTOM are in a price unit, and stated in `price_unit_config`.',
  }),
  display_name: orNull(keyText).meta({ description: 'What an invoice line is called.' }),
  description,
  lookup_key: optionalKey.default(null).meta({ description: 'A name of your own, of one price at a time.' }),
  group_id: orNull(z.string()).meta({ description: 'A group of prices that it belongs to.' }),
  start_date: orNull(timestampText).meta({ description: 'From when on it is sold; now when absent.' }),
  end_date: orNull(timestampText).meta({ description: 'Until when, exclusive; open when absent.' }),
  commitment_time_buckets: orNull(timeBuckets),
  metadata,
};

export const priceShape = z.object({
  id: z.string(),
  ...requestedFields,
  amount: decimalText.meta({
    description: 'In units of the currency, as decimal text: what a unit costs, or a package; not used by TIERED.',
  }),
  display_amount: z.string().meta({ description: 'The amount as people write it, such as $20.' }),
  trial_period_days: orDefault(int32, 0).meta({
    description:
      'Days of trial that a subscription begins with, where it states none itself; of recurring FIXED prices.',
  }),
  ...unitFields,
  entity_type: orNull(priceEntityType).meta({
    description: 'What the price belongs to: PLAN, ADDON, SUBSCRIPTION or COSTSHEET.',
  }),
  entity_id: orNull(z.string()).meta({ description: 'The id of that plan, add-on, subscription or cost sheet.' }),
  parent_price_id: z.string().default('').meta({
    description:
      'The first of the prices that this one succeeds, or the price of the plan that it overrides; empty without.',
  }),
  sequence: wholeNumber.meta({
    description: '1, 2, 3 … of the prices of this plan or subscription, in the order in which they were made.',
  }),
  ...baseFields,
});
export type Price = z.output<typeof priceShape>;

export const priceUnitConfigShape = z.object({
  price_unit: z.string().meta({ description: 'The code of a published price unit.' }),
  amount: orNull(decimalText).meta({ description: 'In the unit: what a unit costs, or a package; not of TIERED.' }),
  price_unit_tiers: orNull(z.array(tierShape)).meta({ description: 'Of TIERED, in the unit.' }),
});

export const createPriceShape = z.object({
  ...requestedFields,
  entity_type: priceEntityType.meta({
    description: 'What the price belongs to: PLAN, ADDON, SUBSCRIPTION or COSTSHEET.',
  }),
  entity_id: z.string().meta({ description: 'The id of that plan, add-on, subscription or cost sheet.' }),
  trial_period_days: orNull(int32).meta({
    description:
      'Days of trial that a subscription begins with, where it states none itself; of recurring FIXED prices.',
  }),
  // The published client's name of trial_period_days.
  trial_period: orNull(int32).meta({ description: 'Another name of `trial_period_days`.' }),
  price_unit_config: orNull(priceUnitConfigShape).meta({ description: 'What a CUSTOM price costs, in its unit.' }),
  filter_values: orNull(z.record(z.string(), z.array(z.string()))).meta({
    description: 'Refused: filters belong on the meter.',
  }),
});
export type CreatePrice = z.output<typeof createPriceShape>;

/** A price that is complete and checked, before it gets an id, a sequence and an owner in the store. */
export type PriceDefinition = Omit<Price, 'id' | 'sequence' | keyof typeof baseFields>;

/** What a CUSTOM price takes over from its price unit; the rate is frozen on the price. */
export type PriceUnitTerms = {
  readonly id: string;
  readonly code: string;
  readonly symbol: string;
  readonly base_currency: string;
  readonly conversion_rate: string;
};

/** The price that a request asks for: defaults filled, tiers in order, the fiat mirror of a custom unit, all checked. */
export function definePrice(request: CreatePrice, unit?: PriceUnitTerms): PriceDefinition {
  const { price_unit_config: _config, filter_values, trial_period, ...requested } = request;
  if (filter_values !== null && Object.keys(filter_values).length > 0)
    throw invalid('filter_values', 'is not supported on a price: put the filters on its meter');
  if (request.tiers?.length) checkCharged(request.billing_model, 'tiers');
  if (request.transform_quantity) checkCharged(request.billing_model, 'transform_quantity');
  const currency = checkCurrency(request.currency);
  const money = { ...fiatMoney(request), ...customMoney(request, unit) };
  const price: PriceDefinition = {
    ...requested,
    ...money,
    currency,
    display_amount: displayAmount(money.amount ?? '0', currency),
    amount: money.amount ?? '0',
    trial_period_days: request.trial_period_days ?? trial_period ?? 0,
    parent_price_id: '',
  };
  if (money.amount === null && isChargedBy(price.billing_model, 'amount'))
    throw invalid(
      price.price_unit === null ? 'amount' : 'price_unit_config.amount',
      `is required for ${price.billing_model}`,
    );
  checkPrice(price);
  return price;
}

/** What a price costs, as far as it is stated. */
export type RequestedCharge = { readonly [Field in 'billing_model' | ChargedField]?: Price[Field] | null };

/** The price with the charge that is stated instead of its own; null states nothing. */
export function replaceCharge<Priced extends PriceDefinition>(price: Priced, requested: RequestedCharge): Priced {
  const fields = ['billing_model', ...CHARGED_FIELDS] as const;
  const charge = Object.fromEntries(fields.map((field) => [field, requested[field] ?? price[field]]));
  const changed = { ...price, ...charge };
  const tiers = changed.tiers === null ? null : sortTiers(changed.tiers);
  return { ...changed, tiers, display_amount: displayAmount(changed.amount, price.currency) };
}

/** Every rule that a price must keep by itself, also after an override or an update. */
export function checkPrice(price: PriceDefinition): void {
  checkCurrency(price.currency);
  checkCharge(price);
  if (price.billing_period === 'ONETIME') checkOnetime(price);
  else if (price.billing_period_count < 1) throw invalid('billing_period_count', 'must be at least 1');
  checkTrial(price);
  checkMinQuantity(price);
  checkNotNegative('amount', price.amount);
  checkUnitTiers(price);
  checkModel(price);
  checkUnitFields(price);
  checkDates(price);
}

/** Usage is billed in arrears, because nobody knows it before; a price override never changes that. */
function checkCharge(price: PriceDefinition): void {
  if (price.type !== 'USAGE') {
    if (price.commitment_time_buckets?.length) throw invalid('commitment_time_buckets', 'is for USAGE prices only');
    return;
  }
  if (price.invoice_cadence !== 'ARREAR') throw invalid('invoice_cadence', 'must be ARREAR for a USAGE price');
  if (!price.meter_id) throw invalid('meter_id', 'is required for a USAGE price');
  if (price.min_quantity !== null) throw invalid('min_quantity', 'is not allowed for a USAGE price');
}

function checkOnetime(price: PriceDefinition): void {
  if (price.type !== 'FIXED') throw invalid('type', 'must be FIXED for a ONETIME price');
  if (price.invoice_cadence !== 'ADVANCE') throw invalid('invoice_cadence', 'must be ADVANCE for a ONETIME price');
}

/** A trial is for recurring prices, and among them for FIXED ones (docs/rules/pricing.md, "What a price must state"). */
function checkTrial(price: PriceDefinition): void {
  if (price.trial_period_days < 0) throw invalid('trial_period_days', 'must not be negative');
  if (price.trial_period_days === 0) return;
  if (price.type !== 'FIXED' || price.billing_period === 'ONETIME')
    throw invalid('trial_period_days', 'is allowed for recurring FIXED prices only');
}

function checkMinQuantity(price: PriceDefinition): void {
  if (price.min_quantity !== null) checkNotNegative('min_quantity', price.min_quantity);
}

function checkUnitTiers(price: PriceDefinition): void {
  if (price.price_unit_type === 'CUSTOM' && isChargedBy(price.billing_model, 'tiers'))
    checkTiers('price_unit_config.price_unit_tiers', price.price_unit_tiers);
}

function checkUnitFields(price: PriceDefinition): void {
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

type PriceMoney = Pick<PriceDefinition, 'tiers' | UnitField> & { amount: string | null };

function fiatMoney(request: CreatePrice): PriceMoney {
  return {
    amount: request.amount,
    tiers: request.tiers === null ? null : sortTiers(request.tiers),
    ...(Object.fromEntries(UNIT_FIELDS.map((field) => [field, null])) as Record<UnitField, null>),
  };
}

/** A CUSTOM price keeps its amounts in the unit and mirrors them in money: amount × rate, not rounded until billing. */
function customMoney(request: CreatePrice, unit: PriceUnitTerms | undefined): PriceMoney | undefined {
  const config = request.price_unit_config;
  if (request.price_unit_type === 'FIAT') {
    if (config !== null) throw invalid('price_unit_config', 'is allowed with price_unit_type CUSTOM only');
    return undefined;
  }
  if (config === null) throw invalid('price_unit_config', 'is required for a CUSTOM price');
  if (request.tiers !== null && request.tiers.length > 0)
    throw invalid('tiers', 'belong into price_unit_config.price_unit_tiers for a CUSTOM price');
  if (request.amount !== null && !new Decimal(request.amount).isZero())
    throw invalid('amount', 'belongs into price_unit_config.amount for a CUSTOM price');
  if (unit === undefined) throw invalid('price_unit_config.price_unit', `${config.price_unit} is not a price unit`);
  if (unit.base_currency.toLowerCase() !== request.currency.toLowerCase())
    throw invalid('currency', `must be ${unit.base_currency}, the base currency of price unit ${unit.code}`);

  if (config.price_unit_tiers?.length)
    checkCharged(request.billing_model, 'tiers', 'price_unit_config.price_unit_tiers');
  const rate = unit.conversion_rate;
  const tiers = config.price_unit_tiers === null ? null : sortTiers(config.price_unit_tiers);
  return {
    amount: config.amount === null ? null : toFiat('price_unit_config.amount', config.amount, rate),
    tiers: tiers === null ? null : tiers.map((tier) => tierToFiat(tier, rate)),
    price_unit: unit.code,
    price_unit_id: unit.id,
    price_unit_amount: config.amount,
    display_price_unit_amount: config.amount === null ? null : withSymbol(config.amount, unit.symbol),
    price_unit_tiers: tiers,
    conversion_rate: rate,
  };
}

function tierToFiat(tier: PriceTier, rate: string): PriceTier {
  return {
    up_to: tier.up_to,
    unit_amount: toFiat('price_unit_config.price_unit_tiers', tier.unit_amount, rate),
    flat_amount:
      tier.flat_amount === null ? null : toFiat('price_unit_config.price_unit_tiers', tier.flat_amount, rate),
  };
}

/** The mirror must be storable as it is: what needs more digits than an amount has is refused, not rounded. */
function toFiat(field: string, amount: string, rate: string): string {
  const text = priceUnitToFiat(amount, rate).toFixed();
  if (parseDecimal(text) === undefined)
    throw invalid(field, `${amount} × ${rate} needs more digits than an amount has`);
  return text;
}

function byWord<Word extends string>(toWord: (model: PricingModel) => string | null): Record<Word, PricingModel> {
  const entries = PRICE_MODELS.map((model) => [toWord(model), model] as const);
  return Object.fromEntries(entries.filter(([word]) => word !== null)) as Record<Word, PricingModel>;
}
