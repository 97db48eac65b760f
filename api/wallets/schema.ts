/** Wallets and their transactions as they are answered and listed. */
import { z } from 'zod';
import { anyCase, decimalText, timestampText } from '../../core/record.ts';
import {
  REFERENCE_TYPES,
  TRANSACTION_REASONS,
  TRANSACTION_STATUSES,
  TRANSACTION_TYPES,
  Wallet,
  WalletTransaction,
} from '../../core/wallet/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape } from '../http/list.ts';

export const WalletAnswer = Wallet.extend({
  credits_available_breakdown: z.null().meta({ description: 'Not there yet: null.' }),
  real_time_balance: z.null().meta({ description: 'Not there yet: null.' }),
  real_time_credit_balance: z.null().meta({ description: 'Not there yet: null.' }),
}).meta({ id: 'WalletResponse' });
export const WalletsAnswer = z.array(WalletAnswer).meta({ id: 'CustomerWalletsResponse' });

export const WalletTransactionAnswer = WalletTransaction.extend({
  customer: z.null().meta({ description: 'Not shown with a transaction yet: null.' }),
  created_by_user: z.null().meta({ description: 'Not shown with a transaction yet: null.' }),
  wallet: z.null().meta({ description: 'Not shown with a transaction yet: null.' }),
}).meta({ id: 'WalletTransactionResponse' });

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
}).meta({ id: 'WalletTransactionListFilter' });
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
};
export const WalletTransactionListAnswer = listAnswer(WalletTransactionAnswer, 'ListWalletTransactionsResponse');
