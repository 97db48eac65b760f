/** Balance of a wallet less unpaid usage and invoices (docs/rules/wallets.md, "The balance in real time"). */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { isPaidType } from '../../rating/prepaid.ts';
import { CREDIT_DECIMALS } from '../../rating/wallet/rates.ts';
import type { Wallet, WalletConfig } from './record.ts';

export type UnpaidInvoice = {
  readonly amount_paid: Decimal;
  readonly amount_remaining: Decimal;
  readonly lines: readonly {
    readonly price_type: string | null;
    readonly amount: Decimal;
    readonly credits_applied: Decimal;
    readonly discount: Decimal;
  }[];
};

type RealTimeWallet = Pick<Wallet, 'wallet_type' | 'wallet_status' | 'balance' | 'conversion_rate' | 'config'>;
export type RealTimeBalance = {
  readonly real_time_balance: string;
  readonly real_time_credit_balance: string;
  readonly current_period_usage: string;
  readonly unpaid_invoices_amount: string;
};

/** Price types that a wallet pays for. Default: USAGE for a prepaid wallet, ALL for a postpaid one. */
export function derivePaidTypes(
  config: WalletConfig | null | undefined,
  wallet_type: Wallet['wallet_type'],
): readonly string[] {
  const configured = config?.allowed_price_types ?? [];
  if (configured.length > 0) return configured;
  return wallet_type === 'PRE_PAID' ? ['USAGE'] : ['ALL'];
}

export function computeRealTimeBalance(
  wallet: RealTimeWallet,
  { current_usage, unpaid }: { current_usage: Decimal; unpaid: readonly UnpaidInvoice[] },
): RealTimeBalance {
  const types = derivePaidTypes(wallet.config, wallet.wallet_type);
  if (wallet.wallet_status !== 'active') return toRealTimeBalance(wallet, ZERO, { usage: ZERO, owed: ZERO });
  if (wallet.wallet_type === 'POST_PAID')
    return toRealTimeBalance(wallet, new Decimal(wallet.balance), { usage: ZERO, owed: ZERO });
  const usage = isPaidType(types, 'USAGE') ? current_usage : ZERO;
  const owed = types.includes('ALL') || types.includes('FIXED') ? sumRemaining(unpaid) : sumRemainingUsage(unpaid);
  return toRealTimeBalance(wallet, new Decimal(wallet.balance).minus(usage).minus(owed), { usage, owed });
}

function sumRemaining(unpaid: readonly UnpaidInvoice[]): Decimal {
  return sumDecimals(unpaid.map(({ amount_remaining }) => amount_remaining));
}

/**
 * Sums the unpaid usage of the invoices: usage net of credits and discounts, less the payments of the invoice, at least 0. Payments above
 * the usage have paid the other lines, which this wallet does not pay for.
 */
function sumRemainingUsage(unpaid: readonly UnpaidInvoice[]): Decimal {
  return sumDecimals(
    unpaid.map(({ amount_paid, lines }) => {
      const usage = lines.filter(({ price_type }) => price_type === 'USAGE');
      const nets = usage.map(({ amount, credits_applied, discount }) => amount.minus(credits_applied).minus(discount));
      return Decimal.max(ZERO, sumDecimals(nets).minus(amount_paid));
    }),
  );
}

function toRealTimeBalance(
  { conversion_rate }: RealTimeWallet,
  balance: Decimal,
  { usage, owed }: { usage: Decimal; owed: Decimal },
): RealTimeBalance {
  return {
    real_time_balance: balance.toFixed(),
    real_time_credit_balance: balance.dividedBy(conversion_rate).toDecimalPlaces(CREDIT_DECIMALS).toFixed(),
    current_period_usage: usage.toFixed(),
    unpaid_invoices_amount: owed.toFixed(),
  };
}
