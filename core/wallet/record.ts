/**
 * A wallet, and what was put into it and taken out of it: the shapes alone. A wallet counts in credits; its balance in money
 * is its credits times `conversion_rate` (docs/rules/wallets.md).
 */
import { z } from 'zod';
import { ALERT_STATES } from '../alert/state.ts';
import { alertSettings } from '../feature/record.ts';
import { anyCase, baseFields, decimalText, int32, metadata, orDefault, orNull, timestampText } from '../record.ts';

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

export const PRICE_TYPES_PAID = ['ALL', 'USAGE', 'FIXED'] as const;
export const walletConfig = z.object({
  allowed_price_types: orNull(z.array(anyCase(PRICE_TYPES_PAID)).max(3)).meta({
    description:
      'Which prices it pays for: ALL, USAGE, FIXED; null or none is USAGE of a prepaid wallet, ALL of a postpaid one.',
  }),
});
export type WalletConfig = z.output<typeof walletConfig>;

/** Of credits, whether they are put in by hand or granted. */
export const creditPriority = orNull(int32.pipe(z.int32().min(0))).meta({
  description: 'Credits with a lower one are used first, those without last.',
});

/** Amounts are credits. */
export const autoTopup = z.object({
  enabled: orDefault(z.boolean(), true).meta({ description: 'Whether it happens.' }),
  threshold: decimalText.meta({
    description: 'It is filled when its credits, less what was used since, are not above it.',
  }),
  amount: decimalText.meta({ description: 'How many credits are bought at a time.' }),
  invoicing: z.boolean().meta({ description: 'Whether an invoice is made, and the credits come when it is paid.' }),
  cooldown: orNull(
    z.object({
      value: z.int().min(1).max(1_000_000).meta({ description: 'How many of them.' }),
      unit: anyCase(['second', 'minute', 'hour', 'day']).meta({ description: 'Of which length.' }),
    }),
  ).meta({ description: 'For how long it is not filled again; null without.' }),
});
export type AutoTopup = z.output<typeof autoTopup>;

export const Wallet = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'Whose it is.' }),
  name: z.string().nullish().meta({ description: 'For people.' }),
  description: z.string().meta({ description: 'For people.' }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
  wallet_type: z.enum(WALLET_TYPES).meta({ description: 'PRE_PAID holds what was paid or given before.' }),
  wallet_status: z.enum(WALLET_STATUSES).meta({ description: 'A closed one stays so.' }),
  balance: decimalText.meta({ description: 'What is in it, in units of the currency, as decimal text.' }),
  credit_balance: decimalText.meta({ description: 'The same in credits.' }),
  credits_owed: decimalText.meta({
    description: 'Credits that were debited beyond what was there; the next that come pay them back.',
  }),
  conversion_rate: decimalText.meta({ description: 'What a credit is worth in units of the currency.' }),
  topup_conversion_rate: decimalText.meta({ description: 'What a credit costs who buys it.' }),
  price_unit: z.string().nullish().meta({ description: 'The unit of your own that it counts in; null without.' }),
  config: walletConfig.nullish().meta({ description: 'What it pays for.' }),
  auto_topup: autoTopup.nullish().meta({ description: 'Whether, and how, it is filled by itself; null without.' }),
  alert_settings: alertSettings.nullish().meta({
    description:
      'Levels that its credits are compared with; null is those of the setting `wallet_balance_alert_config`.',
  }),
  alert_state: z
    .enum(ALERT_STATES)
    .meta({ description: 'The worse of the states of its credits and of what is left of them in real time.' }),
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  version: z.int().meta({ description: 'Every change adds 1.' }),
  ...baseFields,
});
export type Wallet = z.infer<typeof Wallet>;

export const WalletTransaction = z.object({
  id: z.string(),
  wallet_id: z.string().meta({ description: 'The wallet that it changed.' }),
  customer_id: z.string().meta({ description: 'Whose the wallet is.' }),
  type: z.enum(TRANSACTION_TYPES).meta({ description: 'A credit puts something in, a debit takes it out.' }),
  amount: decimalText.meta({ description: 'How much, in units of the currency; not negative.' }),
  credit_amount: decimalText.meta({ description: 'The same in credits.' }),
  credit_balance_before: decimalText.meta({ description: 'The credits of the wallet before it.' }),
  credit_balance_after: decimalText.meta({ description: 'The credits of the wallet after it.' }),
  credits_available: decimalText.meta({ description: 'Of a credit: what no debit has taken yet.' }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
  conversion_rate: decimalText.meta({ description: 'That of the wallet, as it was.' }),
  topup_conversion_rate: decimalText.meta({ description: 'That of the wallet, as it was.' }),
  transaction_status: z.enum(TRANSACTION_STATUSES).meta({ description: 'completed: it has changed the balance.' }),
  transaction_reason: z.enum(TRANSACTION_REASONS).meta({ description: 'Why it was made.' }),
  reference_type: z.enum(REFERENCE_TYPES).meta({ description: 'What `reference_id` names.' }),
  reference_id: z.string().meta({ description: 'What it was made for, such as an invoice.' }),
  parent_transaction_id: z.string().nullish().meta({ description: 'The transaction of which it is a part.' }),
  expiry_date: timestampText
    .nullish()
    .meta({ description: 'Of a credit: until when it can be used; null is for ever.' }),
  priority: z.int().nullish().meta({ description: 'Credits with a lower one are taken first; those without, last.' }),
  pays_after_tax: z.boolean().meta({
    description:
      'A credit that an invoice gave back: it includes tax and pays what remains after taxes. False: it pays before taxes. Of a debit: it paid an invoice after taxes.',
  }),
  idempotency_key: z.string().meta({ description: 'One key is one transaction.' }),
  description: z.string().meta({ description: 'For people.' }),
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  ...baseFields,
});
export type WalletTransaction = z.infer<typeof WalletTransaction>;
