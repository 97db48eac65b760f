/** What clients say of wallets: to make, change, fill and empty them (docs/rules/wallets.md). */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import { alertSettings, checkAlertSettings } from '../feature/record.ts';
import { roundMoney } from '../money.ts';
import {
  anyCase,
  anythingOrNull,
  decimalText,
  int32,
  keyText,
  metadata,
  metadataMap,
  orDefault,
  orNull,
  timestampText,
} from '../record.ts';
import { formatMs, formatUs, parseInstant, toInstant, toUs } from '../time/instant.ts';
import { callersKey } from './movement-key.ts';
import { checkCredits } from './rates.ts';
import {
  type AutoTopup,
  autoTopup,
  creditPriority,
  TRANSACTION_REASONS,
  type TransactionReason,
  WALLET_TYPES,
  walletConfig,
} from './record.ts';

export const createWalletShape = z.object({
  customer_id: orNull(z.string()).meta({ description: 'Whose it is; or `external_customer_id`.' }),
  external_customer_id: orNull(z.string()).meta({ description: 'The customer by the id that you gave.' }),
  currency: z.string().length(3).meta({ description: 'As ISO 4217 has it, in any case.' }),
  name: orNull(keyText).meta({ description: 'For people; "Prepaid wallet, USD" and the like when absent.' }),
  description: orNull(z.string()).meta({ description: 'For people.' }),
  metadata,
  wallet_type: orDefault(anyCase(WALLET_TYPES), 'PRE_PAID').meta({
    description: 'PRE_PAID lowers invoices when they become final, POST_PAID pays them.',
  }),
  conversion_rate: orDefault(decimalText, '1').meta({ description: 'What a credit is worth; 1 when absent.' }),
  topup_conversion_rate: orNull(decimalText).meta({
    description: 'What a credit costs who buys it; the conversion rate when absent.',
  }),
  initial_credits_to_load: orDefault(decimalText, '0').meta({ description: 'Credits that are put in for nothing.' }),
  initial_credits_to_load_expiry_date: orNull(int32).meta({
    description: 'When those expire, as YYYYMMDD: at the start of that day in UTC.',
  }),
  initial_credits_expiry_date_utc: orNull(timestampText).meta({ description: 'The same as an instant.' }),
  alert_settings: orNull(alertSettings).meta({
    description:
      'Levels that its credits are compared with; those of the setting `wallet_balance_alert_config` when null.',
  }),
  auto_topup: orNull(autoTopup).meta({ description: 'Whether, and how, it is filled by itself.' }),
  config: orNull(walletConfig).meta({
    description: 'What it pays for: USAGE of a prepaid one, ALL of a postpaid one.',
  }),
  price_unit: orNull(keyText).meta({
    description:
      'The code of a unit of your own: it says the conversion rate, and the currency, which has to be that of the unit.',
  }),
});
export type CreateWallet = z.output<typeof createWalletShape>;

export const updateWalletShape = z.object({
  name: keyText.nullish().meta({ description: 'For people.' }),
  description: z.string().nullish().meta({ description: 'For people.' }),
  metadata: metadataMap.nullish(),
  auto_topup: autoTopup.nullish().meta({ description: 'Replaces what was set.' }),
  config: walletConfig.nullish().meta({ description: 'What it pays for.' }),
  alert_settings: alertSettings.nullish().meta({
    description:
      'Levels that its credits are compared with; those of the setting `wallet_balance_alert_config` when null.',
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
  credits_to_add: orNull(decimalText).meta({ description: 'How many credits; or `amount`.' }),
  amount: orNull(decimalText).meta({
    description: 'What is paid for them, in units of the currency; not looked at where `credits_to_add` is stated.',
  }),
  transaction_reason: anyCase(TRANSACTION_REASONS).meta({
    description: `${TOP_UP_REASONS.join(', ')}: PURCHASED_CREDIT_INVOICED makes an invoice, and the credits come when it is paid.`,
  }),
  expiry_date_utc: orNull(timestampText).meta({ description: 'When they expire; never when absent.' }),
  expiry_date: orNull(int32).meta({ description: 'The same as YYYYMMDD: the start of that day in UTC.' }),
  priority: creditPriority,
  idempotency_key: orNull(callersKey).meta({ description: 'One key is one top-up: the first answer is given again.' }),
  description: orNull(z.string()).meta({ description: 'For people.' }),
  metadata,
  bonus_credits_to_add: orNull(decimalText).meta({
    description: 'Credits on top of what is bought; by the setting `bonus_credits_topup_config` when absent.',
  }),
  bonus_credits_expiry_date_utc: orNull(timestampText).meta({ description: 'When those expire.' }),
  force_sync_invoice: orNull(z.boolean()).meta({ description: 'Not there yet: refused when it is true.' }),
  checkout: anythingOrNull.meta({ description: 'Not there yet: refused when it says something.' }),
});
export type TopUp = z.output<typeof topUpShape>;

export const debitShape = z.object({
  credits: decimalText.meta({ description: 'How many credits; more than 0.' }),
  transaction_reason: anyCase(TRANSACTION_REASONS).meta({ description: 'MANUAL_BALANCE_DEBIT.' }),
  idempotency_key: callersKey.min(1).meta({ description: 'One key is one debit: the first answer is given again.' }),
  allow_negative: orDefault(z.boolean(), false).meta({
    description: 'Whether more may be taken than is there; the next credits pay it back.',
  }),
  description: orNull(z.string()).meta({ description: 'For people.' }),
  metadata,
});
export type Debit = z.output<typeof debitShape>;

export function checkRates({ conversion_rate, topup_conversion_rate }: WalletRates): void {
  if (new Decimal(conversion_rate).lte(0)) throw invalid('conversion_rate', 'must be greater than 0');
  if (topup_conversion_rate !== null && new Decimal(topup_conversion_rate).lte(0))
    throw invalid('topup_conversion_rate', 'must be greater than 0');
}
type WalletRates = { readonly conversion_rate: string; readonly topup_conversion_rate: string | null };

/** What is said of filling it by itself, and of alerts. */
export function checkWalletSettings({
  auto_topup,
  alert_settings,
}: Pick<UpdateWallet, 'auto_topup' | 'alert_settings'>): void {
  if (alert_settings) checkAlertSettings(alert_settings);
  if (!auto_topup) return;
  if (new Decimal(auto_topup.threshold).isNegative()) throw invalid('auto_topup.threshold', 'must not be below 0');
  checkCredits('auto_topup.amount', auto_topup.amount);
}

/** What is bought by itself is bought for money: an invoice over nothing would never bring it. */
export function checkFilling(
  auto_topup: AutoTopup | null | undefined,
  { topup_conversion_rate, currency }: { readonly topup_conversion_rate: string; readonly currency: string },
): void {
  if (!auto_topup?.invoicing) return;
  if (roundMoney(new Decimal(auto_topup.amount).times(topup_conversion_rate), currency).lte(0))
    throw invalid('auto_topup.amount', `costs less than the smallest unit of ${currency}`);
}

/** When credits expire, which is yet to come; null is never. */
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

/** 20360101 */
function parseDayStart(day: number, field: string): string {
  const digits = String(day);
  const text = `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}T00:00:00Z`;
  const instant = digits.length === 8 ? parseInstant(text) : undefined;
  if (instant === undefined) throw invalid(field, 'must be a day as YYYYMMDD');
  return formatMs(instant);
}
