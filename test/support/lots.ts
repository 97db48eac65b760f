/** Prepaid wallets made of lots, for tests of core. */
import { type Decimal, ZERO } from '../../core/foundation/decimal.ts';
import type { PrepaidWallet } from '../../core/rating/prepaid.ts';
import type { Lot } from '../../core/rating/wallet/lots.ts';

type WalletMoney = {
  readonly balance: Decimal;
  readonly balance_after_tax?: Decimal;
  readonly price_types?: readonly string[];
};

/** Builds a wallet of two lots: one pays before tax, one after tax. A credit is one unit of money. */
export function buildPrepaidWallet({
  balance,
  balance_after_tax = ZERO,
  price_types = ['ALL'],
}: WalletMoney): PrepaidWallet {
  const lots = [buildLot(balance, false), buildLot(balance_after_tax, true)];
  return { price_types, conversion_rate: '1', lots, promised: [], at_ms: 0 };
}

function buildLot(credits: Decimal, pays_after_tax: boolean): Lot {
  const id = pays_after_tax ? 'after tax' : 'before tax';
  const amounts = { credit_amount: credits, available: credits };
  return { id, ...amounts, priority: null, expiry_ms: null, created_ms: 0, pays_after_tax };
}
