/** Requests that create, update, top up and debit a wallet (docs/rules/wallets.md). */
import { z } from 'zod';
import { creditPriority } from '../../catalog/credit-grant/record.ts';
import { checkoutParamsShape } from '../../catalog/customer/checkout-params.ts';
import { alertSettings, checkAlertSettings } from '../../catalog/feature/record.ts';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { roundMoney } from '../../foundation/money.ts';
import {
  anyCase,
  decimalText,
  int32,
  keyText,
  metadata,
  metadataMap,
  orDefault,
  orNull,
  timestampText,
} from '../../foundation/record.ts';
import { formatMs, formatUs, parseInstant, toInstant, toUs } from '../../foundation/time/instant.ts';
import { checkCredits } from '../../rating/wallet/rates.ts';
import { callersKey } from './movement-key.ts';
import {
  type AutoTopup,
  autoTopup,
  TRANSACTION_REASONS,
  type TransactionReason,
  WALLET_TYPES,
  walletConfig,
} from './record.ts';

export const createWalletShape = z.object({
  customer_id: orNull(z.string()).meta({
    description: 'Customer that owns the wallet. Either this field or `external_customer_id` is required.',
  }),
  external_customer_id: orNull(z.string()).meta({
    description: 'Your own id of the customer that owns the wallet. An alternative to `customer_id`.',
  }),
  currency: z.string().length(3).meta({ description: 'Currency code (ISO 4217), case-insensitive.' }),
  name: orNull(keyText).meta({
    description: 'Display name, at most 255 characters. Default: a name such as "Prepaid wallet, USD".',
  }),
  description: orNull(z.string()).meta({ description: 'Description for people.' }),
  metadata,
  wallet_type: orDefault(anyCase(WALLET_TYPES), 'PRE_PAID').meta({
    description:
      'PRE_PAID: its credits are applied to invoices at finalization. POST_PAID: it is a payment method for final invoices. Default: PRE_PAID.',
  }),
  conversion_rate: orDefault(decimalText, '1').meta({
    description: 'Value of one credit in units of the currency; more than 0; default 1.',
  }),
  topup_conversion_rate: orNull(decimalText).meta({
    description: 'Price of one bought credit in units of the currency; more than 0. Default: the conversion rate.',
  }),
  initial_credits_to_load: orDefault(decimalText, '0').meta({
    description: 'Free credits that the new wallet starts with; at most 12 decimals; default 0.',
  }),
  initial_credits_to_load_expiry_date: orNull(int32).meta({
    description: 'Expiry of the initial credits as YYYYMMDD: the start of that day in UTC. A past day is refused.',
  }),
  initial_credits_expiry_date_utc: orNull(timestampText).meta({
    description:
      'Expiry of the initial credits as an instant. Refused together with `initial_credits_to_load_expiry_date`; a past instant is refused.',
  }),
  alert_settings: orNull(alertSettings).meta({
    description:
      'Alert thresholds for the credits of the wallet. Null means the setting `wallet_balance_alert_config`.',
  }),
  auto_topup: orNull(autoTopup).meta({ description: 'Automatic top-up of the wallet; null means none.' }),
  config: orNull(walletConfig).meta({
    description: 'Price types that the wallet pays for. Default: USAGE for a prepaid wallet, ALL for a postpaid one.',
  }),
  price_unit: orNull(keyText).meta({
    description:
      'Code of a custom price unit. It determines the conversion rate and the currency; another rate or currency is refused.',
  }),
});
export type CreateWallet = z.output<typeof createWalletShape>;

export const updateWalletShape = z.object({
  name: keyText.nullish().meta({ description: 'Display name, at most 255 characters.' }),
  description: z.string().nullish().meta({ description: 'Description for people; null clears it.' }),
  metadata: metadataMap.nullish(),
  auto_topup: autoTopup.nullish().meta({ description: 'Automatic top-up; it replaces the current one as a whole.' }),
  config: walletConfig.nullish().meta({ description: 'Price types that the wallet pays for.' }),
  alert_settings: alertSettings.nullish().meta({
    description:
      'Alert thresholds for the credits of the wallet. Null means the setting `wallet_balance_alert_config`.',
  }),
});
export type UpdateWallet = z.output<typeof updateWalletShape>;

export const TOP_UP_REASONS = [
  'FREE_CREDIT_GRANT',
  'PURCHASED_CREDIT_INVOICED',
  'PURCHASED_CREDIT_DIRECT',
  'SUBSCRIPTION_CREDIT_GRANT',
  'CREDIT_NOTE',
  'INVOICE_VOID_REFUND',
] as const satisfies readonly TransactionReason[];

export const topUpShape = z.object({
  credits_to_add: orNull(decimalText).meta({
    description: 'Credits to add; more than 0, at most 12 decimals. Either this field or `amount` is required.',
  }),
  amount: orNull(decimalText).meta({
    description:
      'Price of the credits in units of the currency; more than 0, in whole minor units. It is ignored if `credits_to_add` is given.',
  }),
  transaction_reason: anyCase(TRANSACTION_REASONS).meta({
    description: `${TOP_UP_REASONS.join(', ')}: PURCHASED_CREDIT_INVOICED makes an invoice, and the credits come when it is paid.`,
  }),
  expiry_date_utc: orNull(timestampText).meta({
    description: 'Expiry of the credits; a past instant is refused. Default: they never expire.',
  }),
  expiry_date: orNull(int32).meta({
    description:
      'Expiry of the credits as YYYYMMDD: the start of that day in UTC. Refused together with `expiry_date_utc`; a past day is refused.',
  }),
  priority: creditPriority,
  idempotency_key: orNull(callersKey).meta({
    description:
      'Idempotency key, at most 255 characters. A repeated key returns the first response. A key that begins with `farthing/` is refused.',
  }),
  description: orNull(z.string()).meta({ description: 'Description for people.' }),
  metadata,
  bonus_credits_to_add: orNull(decimalText).meta({
    description:
      'Bonus credits on a purchase; at most 12 decimals. Default: the setting `bonus_credits_topup_config`. Refused for credits that are not bought.',
  }),
  bonus_credits_expiry_date_utc: orNull(timestampText).meta({
    description: 'Expiry of `bonus_credits_to_add`; a past instant is refused. Default: they never expire.',
  }),
  force_sync_invoice: orNull(z.boolean()).meta({ description: 'Not supported yet: true is refused.' }),
  checkout: orNull(checkoutParamsShape).meta({
    description:
      'Page on which the customer pays the purchase; only with PURCHASED_CREDIT_INVOICED. 409 if the wallet has an open checkout. Default: none.',
  }),
});
export type TopUp = z.output<typeof topUpShape>;

export const debitShape = z.object({
  credits: decimalText.meta({ description: 'Credits to take; more than 0, at most 12 decimals.' }),
  transaction_reason: anyCase(TRANSACTION_REASONS).meta({
    description: 'Reason of the debit: MANUAL_BALANCE_DEBIT; another reason is refused.',
  }),
  idempotency_key: callersKey.min(1).meta({
    description:
      'Idempotency key, at most 255 characters. A repeated key returns the first response. A key that begins with `farthing/` is refused.',
  }),
  allow_negative: orDefault(z.boolean(), false).meta({
    description: 'Allows the debit to exceed the balance; the next credits repay the debt. Default: false.',
  }),
  description: orNull(z.string()).meta({ description: 'Description for people.' }),
  metadata,
});
export type Debit = z.output<typeof debitShape>;

export function checkRates({ conversion_rate, topup_conversion_rate }: WalletRates): void {
  if (new Decimal(conversion_rate).lte(0)) throw invalid('conversion_rate', 'must be greater than 0');
  if (topup_conversion_rate !== null && new Decimal(topup_conversion_rate).lte(0))
    throw invalid('topup_conversion_rate', 'must be greater than 0');
}
type WalletRates = { readonly conversion_rate: string; readonly topup_conversion_rate: string | null };

export function checkWalletSettings({
  auto_topup,
  alert_settings,
}: Pick<UpdateWallet, 'auto_topup' | 'alert_settings'>): void {
  if (alert_settings) checkAlertSettings(alert_settings);
  if (!auto_topup) return;
  if (new Decimal(auto_topup.threshold).isNegative()) throw invalid('auto_topup.threshold', 'must not be below 0');
  checkCredits('auto_topup.amount', auto_topup.amount);
}

/** A top-up with an invoice must cost at least one minor unit. An invoice of 0 is never paid, so its credits would never be added. */
export function checkFilling(
  auto_topup: AutoTopup | null | undefined,
  { topup_conversion_rate, currency }: { readonly topup_conversion_rate: string; readonly currency: string },
): void {
  if (!auto_topup?.invoicing) return;
  if (roundMoney(new Decimal(auto_topup.amount).times(topup_conversion_rate), currency).lte(0))
    throw invalid('auto_topup.amount', `costs less than the smallest unit of ${currency}`);
}

/** Expiry of credits, which must be in the future. Null means that they never expire. */
export function parseExpiry(
  requested: { readonly instant: string | null; readonly day: number | null },
  fields: { readonly instant: string; readonly day: string },
  now: Date,
): string | null {
  if (requested.instant !== null && requested.day !== null)
    throw invalid(fields.day, `does not go with ${fields.instant}: give one of them`);
  const field = requested.instant === null ? fields.day : fields.instant;
  const expiry = requested.day === null ? requested.instant : parseDayStart(requested.day, field);
  if (expiry !== null && toInstant(expiry) <= now.getTime())
    throw invalid(field, 'must be in the future', { now: formatUs(toUs(now.getTime())) });
  return expiry;
}

/** Parses a day that is written as a number, for example 20360101. */
function parseDayStart(day: number, field: string): string {
  const digits = String(day);
  const text = `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}T00:00:00Z`;
  const instant = digits.length === 8 ? parseInstant(text) : undefined;
  if (instant === undefined) throw invalid(field, 'must be a day as YYYYMMDD');
  return formatMs(instant);
}
