/**
 * Usage that a customer owes, billed or not, as in the real-time balance of a wallet: from the cache, and recomputed.
 */
import { loadRealTimeBalance } from '../../actions/lifecycle/wallets/real-time-balance.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import type { World } from './world.ts';

type Owed = { cached: string; recomputed: string };

/** Creates a wallet of a thousand credits that pay for usage. */
export async function createUsageWallet(world: World, customer: string): Promise<string> {
  const terms = { config: { allowed_price_types: ['USAGE'] }, initial_credits_to_load: '1000', currency: 'usd' };
  return (await world.post('/wallets', { customer_id: world.id(`customer ${customer}`), ...terms })).id;
}

export async function loadOwed(world: World, wallet: string): Promise<Owed> {
  const uncached = { ...world.api.services, usage_cache: undefined };
  const [cached, recomputed] = await Promise.all([loadCachedOwed(world, wallet), compute(world, wallet, uncached)]);
  return { cached, recomputed };
}

/** Reads the amount from the cache, and caches it if it is missing. */
export function loadCachedOwed(world: World, wallet: string): Promise<string> {
  return compute(world, wallet, world.api.services);
}

async function compute({ api }: World, wallet: string, stores: World['api']['services']): Promise<string> {
  const { services, scope } = api;
  const found = await WalletModel.fetch(scope, wallet, { database: services.postgres });
  const { current_period_usage, unpaid_invoices_amount } = await loadRealTimeBalance(stores, found, services.clock());
  return String(Number(current_period_usage) + Number(unpaid_invoices_amount));
}
