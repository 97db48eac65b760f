/**
 * Builds a requested price, or only its charge: defaults, order of tiers, and conversion of a price unit to money
 * (docs/rules/pricing.md, "What a price must state").
 */
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { checkCurrency, displayAmount, parseDecimal, withSymbol } from '../../foundation/money.ts';
import { checkCharged, isChargedBy } from '../pricing/charge.ts';
import { priceUnitToFiat } from '../pricing/price-unit.ts';
import type { PriceTier } from '../pricing/terms.ts';
import { sortTiers } from '../pricing/tiers.ts';
import {
  type ChargeDefinition,
  type ChargedField,
  type CreatePrice,
  checkPrice,
  checkTerms,
  type PriceDefinition,
  UNIT_FIELDS,
  type UnitField,
} from './record.ts';

/** Terms that a CUSTOM price copies from its price unit. Its rate does not change afterwards. */
export type PriceUnitTerms = {
  readonly id: string;
  readonly code: string;
  readonly symbol: string;
  readonly base_currency: string;
  readonly conversion_rate: string;
};

/**
 * Builds the requested price: fills the defaults, sorts the tiers, converts amounts of a custom unit to money, and
 * validates the result.
 */
export function definePrice(request: CreatePrice, unit?: PriceUnitTerms): PriceDefinition {
  const { price_unit_config: _config, filter_values: _filters, trial_period, ...requested } = request;
  const money = defineMoney(request, unit);
  const price: PriceDefinition = {
    ...requested,
    ...money,
    display_amount: displayAmount(money.amount, money.currency),
    trial_period_days: request.trial_period_days ?? trial_period ?? 0,
    parent_price_id: '',
  };
  checkPrice(price);
  return price;
}

/** Fields of a requested price that determine its charge for a quantity. */
export type ChargeRequest = Pick<
  CreatePrice,
  | 'currency'
  | 'type'
  | 'billing_model'
  | ChargedField
  | 'min_quantity'
  | 'price_unit_type'
  | 'price_unit_config'
  | 'filter_values'
>;

/** Builds the charge of a requested price without its owner, meter and dates, and validates it. */
export function defineCharge(request: ChargeRequest, unit?: PriceUnitTerms): ChargeDefinition {
  const { price_unit_config: _config, filter_values: _filters, ...requested } = request;
  const charge: ChargeDefinition = { ...requested, ...defineMoney(request, unit) };
  checkTerms(charge);
  return charge;
}

function defineMoney(request: ChargeRequest, unit: PriceUnitTerms | undefined) {
  const { filter_values, billing_model } = request;
  if (filter_values !== null && Object.keys(filter_values).length > 0)
    throw invalid('filter_values', 'is not supported on a price: put the filters on its meter');
  if (request.tiers?.length) checkCharged(billing_model, 'tiers');
  if (request.transform_quantity) checkCharged(billing_model, 'transform_quantity');
  const currency = checkCurrency(request.currency);
  const money = { ...fiatMoney(request), ...customMoney(request, unit) };
  if (money.amount === null && isChargedBy(billing_model, 'amount'))
    throw invalid(
      money.price_unit === null ? 'amount' : 'price_unit_config.amount',
      `is required for ${billing_model}`,
    );
  return { ...money, amount: money.amount ?? '0', currency };
}

type PriceMoney = Pick<PriceDefinition, 'tiers' | UnitField> & { amount: string | null };

function fiatMoney(request: ChargeRequest): PriceMoney {
  return {
    amount: request.amount,
    tiers: request.tiers === null ? null : sortTiers(request.tiers),
    ...(Object.fromEntries(UNIT_FIELDS.map((field) => [field, null])) as Record<UnitField, null>),
  };
}

/** A CUSTOM price stores its amounts in the unit and their conversion to money: amount × rate, not rounded until billing. */
function customMoney(request: ChargeRequest, unit: PriceUnitTerms | undefined): PriceMoney | undefined {
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

/** Converts an amount to money. The result is stored unrounded. A conversion that needs more digits than an amount has is refused. */
function toFiat(field: string, amount: string, rate: string): string {
  const text = priceUnitToFiat(amount, rate).toFixed();
  if (parseDecimal(text) === undefined)
    throw invalid(field, `${amount} × ${rate} needs more digits than an amount has`);
  return text;
}
