/**
 * Finds the wallet of a credit reservation (docs/rules/reservations.md, "Credits"). The invoiced customer pays for the usage, so its wallet
 * is used if the customer has none.
 */

import type { ReservationCheckInput } from '../../core/credits/reservations/request.ts';
import { invalid } from '../../core/foundation/error.ts';
import type { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import { type EntitlementReadContext, listGrantingSubscriptions } from '../rating/allowances/entitled-features.ts';
import { loadPayer } from '../subscriptions/load-payer.ts';

/** Returns the requested wallet or, without a request, the customer's only wallet; null if there is none. */
export async function findRequestedWallet(
  customer: CustomerModel,
  { wallet_id, currency }: ReservationCheckInput,
  reading: EntitlementReadContext,
): Promise<WalletModel | null> {
  if (wallet_id !== null) return loadNamedWallet(customer, { wallet_id, currency }, reading);
  const own = await listActiveWallets([customer.id], currency, reading);
  const found = own.length > 0 ? own : await listActiveWallets(await listPayers(customer, reading), currency, reading);
  if (found.length > 1)
    throw invalid('currency', 'is required: the customer has several wallets', {
      allowed: found.map((wallet) => wallet.currency),
    });
  return found[0] ?? null;
}

async function loadNamedWallet(
  customer: CustomerModel,
  { wallet_id, currency }: { wallet_id: string; currency: string | null },
  reading: EntitlementReadContext,
): Promise<WalletModel> {
  const wallet = await WalletModel.fetchPublished(reading.scope, wallet_id, reading);
  const isTheirs =
    wallet.customer_id === customer.id || (await listPayers(customer, reading)).includes(wallet.customer_id);
  if (!isTheirs) throw invalid('wallet_id', 'is not a wallet of this customer');
  if (currency !== null && wallet.currency !== currency.toLowerCase())
    throw invalid('currency', 'is not that of the wallet');
  return wallet;
}

function listActiveWallets(
  customer_ids: readonly string[],
  currency: string | null,
  { scope, database }: EntitlementReadContext,
) {
  return WalletModel.in(scope, database)
    .whereIn('customer_id', [...customer_ids])
    .where({ wallet_type: 'PRE_PAID', wallet_status: 'active', status: 'published' })
    .where(currency === null ? {} : { currency: currency.toLowerCase() });
}

/** Lists the customers that are invoiced for the customer's current usage. */
async function listPayers({ id }: CustomerModel, reading: EntitlementReadContext): Promise<string[]> {
  const subscriptions = await listGrantingSubscriptions(id, undefined, reading);
  const payers = new Set<string>();
  for (const subscription of subscriptions) payers.add(await loadPayer(subscription, reading.database));
  return [...payers];
}
