/** Creates a wallet from a request, with its initial credits (docs/rules/wallets.md, "Making a wallet"). */

import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import {
  type CreateWallet,
  checkFilling,
  checkRates,
  checkWalletSettings,
  parseExpiry,
} from '../../../core/credits/wallet/request.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { invalid, notFound } from '../../../core/foundation/error.ts';
import { checkCurrency } from '../../../core/foundation/money.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { checkCredits } from '../../../core/rating/wallet/rates.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PriceUnitModel } from '../../../storage/models/catalog/price-unit.ts';
import type { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { checkCreditAlerts } from '../balance-alerts/credit-alerts.ts';
import { addWallet } from './add-wallet.ts';
import { moveCredits } from './move-credits.ts';

export async function createWallet(
  stores: Stores,
  scope: Scope,
  { request, author }: { request: CreateWallet; author: Author },
): Promise<WalletModel> {
  checkWalletSettings(request);
  const credits = new Decimal(request.initial_credits_to_load);
  if (!credits.isZero()) checkCredits('initial_credits_to_load', credits);
  const expiry_date = parseExpiry(
    { instant: request.initial_credits_expiry_date_utc, day: request.initial_credits_to_load_expiry_date },
    { instant: 'initial_credits_expiry_date_utc', day: 'initial_credits_to_load_expiry_date' },
    author.now,
  );
  return stores.postgres.transaction(async (transaction) => {
    const customer = await lockCustomer(scope, request, transaction);
    const counted = await loadWalletUnit(scope, request, transaction);
    checkFilling(request.auto_topup, counted);
    const { wallet_type, metadata, auto_topup, alert_settings, name, config } = request;
    const wallet = await addWallet(transaction, scope, {
      ...counted,
      ...(name === null ? {} : { name }),
      ...(config?.allowed_price_types?.length ? { config } : {}),
      customer_id: customer.id,
      wallet_type,
      description: request.description ?? '',
      metadata,
      auto_topup,
      alert_settings,
      author,
    });
    // A wallet without credits may already be at one of its alert thresholds.
    if (credits.isZero()) return alert_settings === null ? wallet : checkCreditAlerts(transaction, wallet, author);
    const moved = await moveCredits(transaction, wallet, {
      movement: { kind: 'credit', credits },
      transaction_reason: 'FREE_CREDIT_GRANT',
      reference_type: 'EXTERNAL',
      reference_id: wallet.id,
      idempotency_key: toOwnKey('initial', wallet.id),
      description: 'Initial credits',
      metadata: null,
      expiry_date,
      author,
    });
    return moved.wallet;
  });
}

type CustomerReference = Pick<CreateWallet, 'customer_id' | 'external_customer_id'>;

async function lockCustomer(
  scope: Scope,
  { customer_id, external_customer_id }: CustomerReference,
  database: Database,
) {
  if (customer_id) {
    const customer = await CustomerModel.fetchPublished(scope, customer_id, { database, lock: 'shared' });
    if (external_customer_id && customer.external_id !== external_customer_id)
      throw invalid('external_customer_id', `is not the external id of customer ${customer_id}`);
    return customer;
  }
  if (!external_customer_id) throw invalid('customer_id', 'is required, or external_customer_id');
  // The customer's row is locked: a concurrent archival either commits first or waits and then finds this wallet.
  const [customer] = await CustomerModel.in(scope, database)
    .where({ external_id: external_customer_id, status: 'published' })
    .forShare();
  if (!customer) throw notFound('customer', external_customer_id);
  return customer;
}

/** Loads the price unit, which sets currency and rate; a request with another currency or rate is refused. */
async function loadWalletUnit(scope: Scope, request: CreateWallet, database: Database) {
  const { price_unit } = request;
  if (price_unit === null) {
    checkRates(request);
    const { conversion_rate } = request;
    return {
      currency: checkCurrency(request.currency),
      conversion_rate,
      topup_conversion_rate: request.topup_conversion_rate ?? conversion_rate,
      price_unit,
    };
  }
  const { base_currency, conversion_rate, code } = await PriceUnitModel.fetchByCode(scope, price_unit, database);
  if (checkCurrency(request.currency) !== base_currency)
    throw invalid('currency', `must be ${base_currency}, as that of price unit ${code}`);
  const requested = new Decimal(request.conversion_rate);
  // The published client library sends 1 if its caller sets no rate, so 1 counts as no rate.
  if (!requested.eq(1) && !requested.eq(conversion_rate))
    throw invalid('conversion_rate', `must be ${conversion_rate}, as that of price unit ${code}`);
  const { topup_conversion_rate } = request;
  checkRates({ conversion_rate, topup_conversion_rate });
  return {
    currency: base_currency,
    conversion_rate,
    topup_conversion_rate: topup_conversion_rate ?? conversion_rate,
    price_unit: code,
  };
}
