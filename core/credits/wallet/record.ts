/**
 * Shapes of a wallet and its transactions. A wallet counts credits; its balance in money is its credits times `conversion_rate`
 * (docs/rules/wallets.md).
 */
import { z } from 'zod';
import { ALERT_STATES } from '../../catalog/alert/state.ts';
import { alertSettings } from '../../catalog/feature/record.ts';
import {
  anyCase,
  baseFields,
  decimalText,
  metadata,
  orDefault,
  orNull,
  timestampText,
} from '../../foundation/record.ts';

export const WALLET_TYPES = ['PRE_PAID', 'POST_PAID'] as const;
export const WALLET_STATUSES = ['active', 'frozen', 'closed'] as const;
export const TRANSACTION_TYPES = ['credit', 'debit'] as const;
export const TRANSACTION_STATUSES = ['pending', 'completed', 'failed'] as const;
export const TRANSACTION_REASONS = [
  'INVOICE_PAYMENT',
  'FREE_CREDIT_GRANT',
  'SUBSCRIPTION_CREDIT_GRANT',
  'PURCHASED_CREDIT_INVOICED',
  'PURCHASED_CREDIT_DIRECT',
  'CREDIT_NOTE',
  'CREDIT_EXPIRED',
  'WALLET_TERMINATION',
  'MANUAL_BALANCE_DEBIT',
  'CREDIT_ADJUSTMENT',
  'INVOICE_VOID_REFUND',
  'PURCHASED_CREDIT_BONUS',
] as const;
export const REFERENCE_TYPES = ['PAYMENT', 'EXTERNAL', 'REQUEST', 'INVOICE'] as const;

export type TransactionReason = (typeof TRANSACTION_REASONS)[number];
export type ReferenceType = (typeof REFERENCE_TYPES)[number];

const PRICE_TYPES_PAID = ['ALL', 'USAGE', 'FIXED'] as const;
export const walletConfig = z.object({
  allowed_price_types: orNull(z.array(anyCase(PRICE_TYPES_PAID)).max(3)).meta({
    description:
      'Price types that the wallet pays for: ALL, USAGE or FIXED. Null or an empty list means USAGE for a prepaid wallet and ALL for a postpaid one.',
  }),
});
export type WalletConfig = z.output<typeof walletConfig>;

/** Automatic top-up of a wallet; its amounts are credits. */
export const autoTopup = z.object({
  enabled: orDefault(z.boolean(), true).meta({ description: 'Enables automatic top-ups; default true.' }),
  threshold: decimalText.meta({
    description:
      'A top-up happens if the real-time credits are not above this threshold, in credits; negative values are refused.',
  }),
  amount: decimalText.meta({ description: 'Credits that one top-up buys; more than 0.' }),
  invoicing: z.boolean().meta({
    description:
      'If true, a top-up makes an invoice, and the credits are added when it is paid. If false, the credits are added at once.',
  }),
  cooldown: orNull(
    z.object({
      value: z.int().min(1).max(1_000_000).meta({ description: 'Number of units, from 1 to 1,000,000.' }),
      unit: anyCase(['second', 'minute', 'hour', 'day']).meta({
        description: 'Unit of time of the cooldown, case-insensitive.',
      }),
    }),
  ).meta({ description: 'Minimum time between two top-ups; null means no minimum.' }),
});
export type AutoTopup = z.output<typeof autoTopup>;

export const Wallet = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'Customer that owns the wallet.' }),
  name: z.string().nullish().meta({ description: 'Display name of the wallet.' }),
  description: z.string().meta({ description: 'Description for people.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
  wallet_type: z.enum(WALLET_TYPES).meta({
    description:
      'PRE_PAID: its credits are applied to invoices at finalization. POST_PAID: it is a payment method for final invoices.',
  }),
  wallet_status: z
    .enum(WALLET_STATUSES)
    .meta({ description: 'Status of the wallet. A closed wallet cannot be opened again.' }),
  balance: decimalText.meta({
    description: 'Balance in units of the currency, as decimal text; negative if credits are owed.',
  }),
  credit_balance: decimalText.meta({ description: 'Balance in credits, as decimal text.' }),
  credits_owed: decimalText.meta({
    description: 'Credits that were debited beyond the balance. The next credits repay them first.',
  }),
  conversion_rate: decimalText.meta({ description: 'Value of one credit in units of the currency.' }),
  topup_conversion_rate: decimalText.meta({ description: 'Price of one bought credit in units of the currency.' }),
  price_unit: z
    .string()
    .nullish()
    .meta({ description: 'Code of the custom price unit that the wallet counts in; null if none.' }),
  config: walletConfig
    .nullish()
    .meta({ description: 'Price types that the wallet pays for; null means the default of its type.' }),
  auto_topup: autoTopup.nullish().meta({ description: 'Automatic top-up of the wallet; null if it has none.' }),
  alert_settings: alertSettings.nullish().meta({
    description:
      'Alert thresholds for the credits of the wallet. Null means the setting `wallet_balance_alert_config`.',
  }),
  alert_state: z
    .enum(ALERT_STATES)
    .meta({ description: 'Alert state: the worse of the states of the credits and of the real-time credits.' }),
  metadata: metadata.nullish().meta({ description: 'Metadata (text to text); null if none.' }),
  version: z.int().meta({ description: 'Version of the wallet; every change adds 1.' }),
  ...baseFields,
});
export type Wallet = z.infer<typeof Wallet>;

export const WalletTransaction = z.object({
  id: z.string(),
  wallet_id: z.string().meta({ description: 'Wallet that the transaction belongs to.' }),
  customer_id: z.string().meta({ description: 'Customer that owns the wallet.' }),
  type: z.enum(TRANSACTION_TYPES).meta({ description: 'A credit adds credits, a debit takes them.' }),
  amount: decimalText.meta({ description: 'Amount in units of the currency; never negative.' }),
  credit_amount: decimalText.meta({ description: 'Amount in credits; never negative.' }),
  credit_balance_before: decimalText.meta({ description: 'Credit balance of the wallet before the transaction.' }),
  credit_balance_after: decimalText.meta({ description: 'Credit balance of the wallet after the transaction.' }),
  credits_available: decimalText.meta({ description: 'Credits of a credit transaction that are not used yet.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
  conversion_rate: decimalText.meta({ description: 'Conversion rate of the wallet at the time of the transaction.' }),
  topup_conversion_rate: decimalText.meta({
    description: 'Top-up conversion rate of the wallet at the time of the transaction.',
  }),
  transaction_status: z
    .enum(TRANSACTION_STATUSES)
    .meta({ description: 'Status of the transaction. Only a completed transaction has changed the balance.' }),
  transaction_reason: z.enum(TRANSACTION_REASONS).meta({ description: 'Reason of the transaction.' }),
  reference_type: z.enum(REFERENCE_TYPES).meta({ description: 'Type of the record that `reference_id` identifies.' }),
  reference_id: z.string().meta({ description: 'Id of the record that caused the transaction, such as an invoice.' }),
  parent_transaction_id: z
    .string()
    .nullish()
    .meta({ description: 'Transaction that this one is part of or reverses; null if none.' }),
  expiry_date: timestampText
    .nullish()
    .meta({ description: 'Last instant at which the credits can be used; null means that they never expire.' }),
  priority: z
    .int()
    .nullish()
    .meta({ description: 'Order of use; lower values are used first. Credits without a priority are used last.' }),
  pays_after_tax: z.boolean().meta({
    description:
      'For added credits: true if they come from an invoice, such as those of a credit note. These include tax and pay ' +
      'what remains of an invoice after taxes; other credits pay lines before taxes. ' +
      'For used credits: true if they paid after taxes.',
  }),
  idempotency_key: z.string().meta({ description: 'Idempotency key. One key is one transaction.' }),
  description: z.string().meta({ description: 'Description for people.' }),
  metadata: metadata.nullish().meta({ description: 'Metadata (text to text); null if none.' }),
  ...baseFields,
});
export type WalletTransaction = z.infer<typeof WalletTransaction>;
