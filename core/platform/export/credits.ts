/** Columns of exported credit movements (docs/rules/exports.md, "Credits"). */

import type { WalletTransaction } from '../../credits/wallet/record.ts';
import type { Microseconds } from '../../foundation/time/instant.ts';
import { defineExportColumns } from './column.ts';
import { toExportMicroseconds } from './invoices.ts';

export type ExportedCredits = {
  readonly transaction: WalletTransaction;
  readonly moved_at_us: Microseconds;
  readonly customer: { readonly external_id: string; readonly name: string } | null;
  readonly wallet: { readonly name?: string | null | undefined } | null;
};

const { text, word, decimal, instant } = defineExportColumns<ExportedCredits>();

const shared = [
  word('id', ({ transaction }) => transaction.id),
  instant('moved_at', ({ moved_at_us }) => moved_at_us),
  word('wallet_id', ({ transaction }) => transaction.wallet_id),
  text('wallet_name', ({ wallet }) => wallet?.name ?? null),
  word('customer_id', ({ transaction }) => transaction.customer_id),
  text('customer_external_id', ({ customer }) => customer?.external_id ?? null),
  text('customer_name', ({ customer }) => customer?.name ?? null),
  word('transaction_reason', ({ transaction }) => transaction.transaction_reason),
  decimal('credit_amount', ({ transaction }) => transaction.credit_amount),
  decimal('amount', ({ transaction }) => transaction.amount),
  word('currency', ({ transaction }) => transaction.currency),
  decimal('credit_balance_before', ({ transaction }) => transaction.credit_balance_before),
  decimal('credit_balance_after', ({ transaction }) => transaction.credit_balance_after),
  word('reference_type', ({ transaction }) => transaction.reference_type),
  text('reference_id', ({ transaction }) => transaction.reference_id),
  text('description', ({ transaction }) => transaction.description),
  instant('created_at', ({ transaction }) => toExportMicroseconds(transaction.created_at)),
];

export const CREDIT_TOPUP_COLUMNS = [
  ...shared,
  decimal('credits_available', ({ transaction }) => transaction.credits_available),
  instant('expiry_date', ({ transaction }) => toExportMicroseconds(transaction.expiry_date)),
];

export const CREDIT_USAGE_COLUMNS = shared;
