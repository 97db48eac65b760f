/** Requests, answers and lists of wallets and of their transactions. */
import { z } from 'zod';
import { anyCase, decimalText, int32, STATUSES, timestampText } from '../../core/record.ts';
import {
  REFERENCE_TYPES,
  TRANSACTION_REASONS,
  TRANSACTION_STATUSES,
  TRANSACTION_TYPES,
  WALLET_STATUSES,
  Wallet,
  WalletTransaction,
} from '../../core/wallet/record.ts';
import { createWalletShape, debitShape, topUpShape, updateWalletShape } from '../../core/wallet/request.ts';
import { CustomerAnswer } from '../customers/schema.ts';
import { BASE_COLUMNS, expand, flag, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';
import { MessageAnswer } from '../http/route.ts';
import { UserAnswer } from '../users/schema.ts';

export const CreateWallet = createWalletShape.meta({
  id: 'CreateWalletRequest',
  example: { external_customer_id: 'acme', currency: 'eur', conversion_rate: '0.5', initial_credits_to_load: '100' },
});
export const UpdateWallet = updateWalletShape.meta({
  id: 'UpdateWalletRequest',
  example: { name: 'Main', config: { allowed_price_types: ['ALL'] } },
});
export const TopUpWallet = topUpShape.meta({
  id: 'TopUpWalletRequest',
  example: {
    credits_to_add: '50',
    transaction_reason: 'PURCHASED_CREDIT_DIRECT',
    idempotency_key: 'order-4711',
    priority: 1,
  },
});
export const DebitWallet = debitShape.meta({
  id: 'ManualBalanceDebitRequest',
  example: { credits: '30', transaction_reason: 'MANUAL_BALANCE_DEBIT', idempotency_key: 'job-17' },
});
export const ModifyWallet = z
  .object({
    modification_type: anyCase(['prepaid_to_postpaid']).meta({ description: 'prepaid_to_postpaid.' }),
  })
  .meta({ id: 'ModifyWalletRequest', example: { modification_type: 'prepaid_to_postpaid' } });

const CreditBreakdown = z
  .object({
    purchased: decimalText.meta({ description: 'What is left of credits that were bought.' }),
    free: decimalText.meta({ description: 'What is left of all others.' }),
  })
  .meta({ id: 'CreditBreakdown' });

export const WalletAnswer = Wallet.extend({
  credits_available_breakdown: CreditBreakdown.nullable().meta({
    description: 'Where `expand` names it.',
  }),
  real_time_balance: decimalText.nullable().meta({ description: 'Of `balance/real-time`: null here.' }),
  real_time_credit_balance: decimalText.nullable().meta({ description: 'Of `balance/real-time`: null here.' }),
}).meta({ id: 'WalletResponse' });
export const WalletsAnswer = z.array(WalletAnswer).meta({ id: 'CustomerWalletsResponse' });

export const WalletBalanceAnswer = WalletAnswer.extend({
  real_time_balance: decimalText
    .nullable()
    .meta({ description: 'The balance less what was used and is not paid yet.' }),
  real_time_credit_balance: decimalText.nullable().meta({ description: 'The same in credits.' }),
  balance_updated_at: timestampText.nullable().meta({ description: 'The instant at which that was so.' }),
  current_period_usage: decimalText.nullable().meta({ description: 'What the usage of running periods comes to.' }),
  unpaid_invoices_amount: decimalText
    .nullable()
    .meta({ description: 'What of it stands on invoices that are not paid.' }),
  as_of: timestampText.nullable().meta({
    description: 'All usage that was accepted before this instant is in it: a second ago at most while events arrive.',
  }),
  is_cached_fallback: z
    .boolean()
    .meta({ description: 'false: it is never older than `as_of`, and all records are as they are now.' }),
}).meta({ id: 'WalletBalanceResponse' });
export const WalletBalancesAnswer = z.array(WalletBalanceAnswer).meta({ id: 'CustomerWalletBalancesResponse' });

export const WalletEnded = WalletAnswer.extend(MessageAnswer.shape).meta({ id: 'WalletTerminatedResponse' });
export const WalletModified = z
  .object({
    original_wallet: WalletAnswer.nullable().meta({ description: 'The prepaid one, closed.' }),
    new_wallet: WalletAnswer.nullable().meta({ description: 'The postpaid one, with the same credits.' }),
  })
  .meta({ id: 'WalletModificationResponse' });

export const WalletTransactionAnswer = WalletTransaction.extend({
  customer: CustomerAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
  created_by_user: UserAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
  wallet: WalletAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
}).meta({ id: 'WalletTransactionResponse' });

export const WalletDebited = WalletAnswer.extend({
  wallet_transaction: WalletTransactionAnswer.meta({ description: 'What was taken, and of which credits.' }),
}).meta({ id: 'WalletDebitedResponse' });

export const ToppedUpAnswer = z
  .object({
    wallet_transaction: WalletTransactionAnswer.nullable().meta({ description: 'What was put in, or is to come.' }),
    invoice_id: z.string().nullable().meta({ description: 'The invoice with which it is bought; null without.' }),
    wallet: WalletAnswer.nullable().meta({ description: 'The wallet as it is then.' }),
    checkout_session: z.null().meta({ description: 'Not there yet: null.' }),
  })
  .meta({ id: 'TopUpWalletResponse' });

export const WalletExpand = z.object({ expand });
const fromCache = flag.optional().meta({ description: 'Nothing is cached: without effect.' });
export const BalanceQuery = z.object({ expand, from_cache: fromCache });
export const CustomerWalletsQuery = z.object({
  id: z.string().optional().meta({ description: 'The customer by its id; or `lookup_key`.' }),
  lookup_key: z.string().optional().meta({ description: 'The customer by the id that you gave.' }),
  include_real_time_balance: flag.optional().meta({ description: 'Whether balances in real time are answered.' }),
  from_cache: fromCache,
  expand,
});

export const WalletFilter = listShape({
  wallet_ids: matchAny('wallets'),
  status: anyCase([...WALLET_STATUSES, ...STATUSES])
    .optional()
    .meta({ description: '`active`, `frozen` or `closed`; or the status of the record.' }),
  alert_enabled: flag.optional().meta({
    description:
      'Whether alerts are switched on: by its own settings, or, where it has none, by those of the environment.',
  }),
}).meta({ id: 'WalletFilter', example: { status: 'active', limit: 10 } });
export type WalletFilter = z.output<typeof WalletFilter>;
export const WalletListAnswer = listAnswer(WalletAnswer, 'ListWalletsResponse');

export const walletGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    customer_id: 'string',
    name: 'string',
    currency: 'string',
    wallet_type: 'string',
    wallet_status: 'string',
    balance: 'number',
    credit_balance: 'number',
  },
  expand: ['credits_available_breakdown'],
  metadata: true,
};

export const WalletTransactionFilter = listShape({
  id: z.string().optional().meta({ description: 'Id of the transaction.' }),
  type: anyCase(TRANSACTION_TYPES).optional().meta({ description: 'Only credits, or only debits.' }),
  transaction_status: anyCase(TRANSACTION_STATUSES).optional().meta({ description: 'How far it is.' }),
  transaction_reason: anyCase(TRANSACTION_REASONS).optional().meta({ description: 'Why it was made.' }),
  reference_type: anyCase(REFERENCE_TYPES).optional().meta({ description: 'What `reference_id` names.' }),
  reference_id: z.string().optional().meta({ description: 'What it was made for, such as an invoice.' }),
  credits_available_gt: decimalText.optional().meta({ description: 'Credits of which more than this is left.' }),
  expiry_date_before: timestampText.optional().meta({ description: 'Credits that expire before this instant.' }),
  expiry_date_after: timestampText.optional().meta({ description: 'Credits that expire after this instant.' }),
  priority: int32.optional().meta({ description: 'Credits of this priority.' }),
  created_by: z.string().optional().meta({ description: 'Id of the user who asked for it.' }),
}).meta({
  id: 'WalletTransactionListFilter',
  example: { transaction_reason: 'PURCHASED_CREDIT_DIRECT', credits_available_gt: '0', limit: 10 },
});
export type WalletTransactionFilter = z.output<typeof WalletTransactionFilter>;

export const walletTransactionGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    wallet_id: 'string',
    customer_id: 'string',
    type: 'string',
    amount: 'number',
    credit_amount: 'number',
    credits_available: 'number',
    currency: 'string',
    transaction_status: 'string',
    transaction_reason: 'string',
    reference_type: 'string',
    reference_id: 'string',
    expiry_date: 'date',
    priority: 'number',
    idempotency_key: 'string',
  },
  expand: ['customer', 'created_by_user', 'wallet'],
};
export const WalletTransactionListAnswer = listAnswer(WalletTransactionAnswer, 'ListWalletTransactionsResponse');
