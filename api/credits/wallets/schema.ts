import { z } from 'zod';
import {
  REFERENCE_TYPES,
  TRANSACTION_REASONS,
  TRANSACTION_STATUSES,
  TRANSACTION_TYPES,
  WALLET_STATUSES,
  Wallet,
  WalletTransaction,
} from '../../../core/credits/wallet/record.ts';
import { createWalletShape, debitShape, topUpShape, updateWalletShape } from '../../../core/credits/wallet/request.ts';
import { anyCase, decimalText, int32, STATUSES, timestampText } from '../../../core/foundation/record.ts';
import { CustomerAnswer } from '../../catalog/customers/schema.ts';
import { CheckoutSessionAnswer } from '../../foundation/checkout-session.ts';
import { UserAnswer } from '../../foundation/users/schema.ts';
import { BASE_COLUMNS, expand, flag, type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';
import { MessageAnswer } from '../../http/route.ts';

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
    modification_type: anyCase(['prepaid_to_postpaid']).meta({ description: 'Must be prepaid_to_postpaid.' }),
  })
  .meta({ id: 'ModifyWalletRequest', example: { modification_type: 'prepaid_to_postpaid' } });

const CreditBreakdown = z
  .object({
    purchased: decimalText.meta({ description: 'Remaining purchased credits.' }),
    free: decimalText.meta({ description: 'Remaining credits from all other sources.' }),
  })
  .meta({ id: 'CreditBreakdown' });

export const WalletAnswer = Wallet.extend({
  credits_available_breakdown: CreditBreakdown.nullable().meta({
    description: 'Present if `expand` names credits_available_breakdown; else null.',
  }),
  real_time_balance: decimalText
    .nullable()
    .meta({ description: 'Always null; `GET /wallets/{id}/balance/real-time` returns this balance.' }),
  real_time_credit_balance: decimalText
    .nullable()
    .meta({ description: 'Always null; `GET /wallets/{id}/balance/real-time` returns this balance.' }),
}).meta({ id: 'WalletResponse' });
export const WalletsAnswer = z.array(WalletAnswer).meta({ id: 'CustomerWalletsResponse' });

export const WalletBalanceAnswer = WalletAnswer.extend({
  real_time_balance: decimalText.nullable().meta({ description: 'Balance minus unpaid usage and invoices, in money.' }),
  real_time_credit_balance: decimalText
    .nullable()
    .meta({ description: 'Balance minus unpaid usage and invoices, in credits.' }),
  balance_updated_at: timestampText.nullable().meta({ description: 'Instant of the computation.' }),
  current_period_usage: decimalText.nullable().meta({ description: 'Cost of the usage in current periods.' }),
  unpaid_invoices_amount: decimalText
    .nullable()
    .meta({ description: 'Part of the unpaid amounts that is on unpaid invoices.' }),
  as_of: timestampText.nullable().meta({
    description:
      'Instant before which all accepted usage is included. It is at most one second ago while events arrive.',
  }),
  is_cached_fallback: z
    .boolean()
    .meta({ description: 'Always false: usage is current up to `as_of`, and all records are current.' }),
}).meta({ id: 'WalletBalanceResponse' });
export const WalletBalancesAnswer = z.array(WalletBalanceAnswer).meta({ id: 'CustomerWalletBalancesResponse' });

export const WalletEnded = WalletAnswer.extend(MessageAnswer.shape).meta({ id: 'WalletTerminatedResponse' });
export const WalletModified = z
  .object({
    original_wallet: WalletAnswer.nullable().meta({ description: 'The prepaid wallet, now closed.' }),
    new_wallet: WalletAnswer.nullable().meta({ description: 'The postpaid wallet with the moved credits.' }),
  })
  .meta({ id: 'WalletModificationResponse' });

export const WalletTransactionAnswer = WalletTransaction.extend({
  customer: CustomerAnswer.nullable().meta({ description: 'Present if `expand` names customer; else null.' }),
  created_by_user: UserAnswer.nullable().meta({ description: 'Present if `expand` names created_by_user; else null.' }),
  wallet: WalletAnswer.nullable().meta({ description: 'Present if `expand` names wallet; else null.' }),
}).meta({ id: 'WalletTransactionResponse' });

export const WalletDebited = WalletAnswer.extend({
  wallet_transaction: WalletTransactionAnswer.meta({ description: 'The debit, with the credits that it used.' }),
}).meta({ id: 'WalletDebitedResponse' });

export const ToppedUpAnswer = z
  .object({
    wallet_transaction: WalletTransactionAnswer.nullable().meta({ description: 'The credit, or the pending credit.' }),
    invoice_id: z.string().nullable().meta({ description: 'Id of the invoice for the purchase; null without one.' }),
    wallet: WalletAnswer.nullable().meta({ description: 'Wallet after the top-up.' }),
    checkout_session: CheckoutSessionAnswer.nullable().meta({
      description: 'Checkout of the purchase; null without one.',
    }),
  })
  .meta({ id: 'TopUpWalletResponse' });

export const WalletExpand = z.object({ expand });
const fromCache = flag.optional().meta({ description: 'Accepted without effect; balances are always current.' });
export const BalanceQuery = z.object({ expand, from_cache: fromCache });
export const CustomerWalletsQuery = z.object({
  id: z.string().optional().meta({ description: 'Id of the customer, as an alternative to `lookup_key`.' }),
  lookup_key: z.string().optional().meta({ description: 'External id of the customer, as an alternative to `id`.' }),
  include_real_time_balance: flag.optional().meta({ description: 'True includes real-time balances. Default false.' }),
  from_cache: fromCache,
  expand,
});

export const WalletFilter = listShape({
  wallet_ids: matchAny('wallets'),
  status: anyCase([...WALLET_STATUSES, ...STATUSES])
    .optional()
    .meta({ description: 'Wallet status (`active`, `frozen` or `closed`), or the status of the record.' }),
  alert_enabled: flag.optional().meta({
    description:
      "Matches wallets whose alerts are enabled or disabled, by the wallet's settings, else by those of the environment.",
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
  type: anyCase(TRANSACTION_TYPES).optional().meta({ description: 'Matches credits or debits only.' }),
  transaction_status: anyCase(TRANSACTION_STATUSES).optional().meta({ description: 'Status of the transaction.' }),
  transaction_reason: anyCase(TRANSACTION_REASONS).optional().meta({ description: 'Reason of the transaction.' }),
  reference_type: anyCase(REFERENCE_TYPES)
    .optional()
    .meta({ description: 'Kind of record that `reference_id` names.' }),
  reference_id: z
    .string()
    .optional()
    .meta({ description: 'Id of the record that caused the transaction, such as an invoice.' }),
  credits_available_gt: decimalText
    .optional()
    .meta({ description: 'Matches credits whose remainder is above this value.' }),
  expiry_date_before: timestampText
    .optional()
    .meta({ description: 'Matches credits that expire before this instant.' }),
  expiry_date_after: timestampText.optional().meta({ description: 'Matches credits that expire after this instant.' }),
  priority: int32.optional().meta({ description: 'Matches credits of this priority.' }),
  created_by: z.string().optional().meta({ description: 'Id of the user who created the transaction.' }),
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
