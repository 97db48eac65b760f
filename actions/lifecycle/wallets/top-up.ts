/**
 * Puts granted or bought credits into a wallet (docs/rules/wallets.md, "Top-ups"). Credits bought with an invoice arrive when it is paid
 * (pending-credits.ts), and their bonus arrives with them.
 */

import { checkCheckoutParams } from '../../../core/catalog/customer/checkout-params.ts';
import { type Bonus, computeBonus } from '../../../core/credits/wallet/bonus.ts';
import { listOwnKeys, type MovementKey, toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import type { TransactionReason } from '../../../core/credits/wallet/record.ts';
import { parseExpiry, TOP_UP_REASONS, type TopUp } from '../../../core/credits/wallet/request.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { roundMoney } from '../../../core/foundation/money.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { toPurchaseKey } from '../../../core/invoicing/invoice/own-key.ts';
import { createInvoiceShape, type InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { checkCredits, toCredits } from '../../../core/rating/wallet/rates.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { putInto } from '../../../storage/models/credits/ledger.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import type { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { checkActive, lockWallet, lockWalletInOrder } from '../../credits/wallets/lock-wallet.ts';
import {
  type CreditMovement,
  checkAmount,
  checkSame,
  moveAll,
  restoreWallet,
} from '../../credits/wallets/move-credits.ts';
import { addPending } from '../../credits/wallets/pending-credits.ts';
import { createInvoiceWithin } from '../../invoicing/invoices/create-invoice.ts';
import { finalizeWithin } from '../../invoicing/invoices/finalize-invoice.ts';
import { addPurchaseCheckout, checkNoWalletCheckout, findCheckoutOfInvoice } from '../checkout/purchase-checkout.ts';
import { openCheckoutPage } from '../checkout/start-checkout.ts';

type TopUpResult = {
  readonly wallet: WalletModel;
  readonly wallet_transaction: WalletTransactionModel;
  readonly invoice_id: string | null;
};

type ToppedUpWallet = TopUpResult & { readonly checkout_session: CheckoutSessionModel | null };

/** Tops up a wallet. If the purchase has a checkout, its page is opened after the commit. */
export async function topUpWallet(
  stores: Stores,
  scope: Scope,
  input: { id: string; request: TopUp; author: Author },
): Promise<ToppedUpWallet> {
  const done = await writeTopUp(stores, scope, input);
  const session = await findCheckoutOfInvoice(stores.postgres, scope, done.invoice_id);
  const checkout_session = session && (await openCheckoutPage(stores, session, input.author));
  return { ...done, checkout_session };
}

async function writeTopUp(
  stores: Stores,
  scope: Scope,
  { id, request: given, author }: { id: string; request: TopUp; author: Author },
): Promise<TopUpResult> {
  const request = { ...given, idempotency_key: given.idempotency_key ?? toCheckoutKey(given) };
  const attempt = async (transaction: Transaction) => {
    const { customer_id } = await WalletModel.fetch(scope, id, { database: transaction });
    // An invoice's creation locks its customer first; finalization then locks all wallets that may pay it.
    await CustomerModel.fetch(scope, customer_id, { database: transaction, lock: true });
    const isInvoiced = request.transaction_reason === 'PURCHASED_CREDIT_INVOICED';
    const wallet = isInvoiced
      ? await lockWalletInOrder(transaction, scope, { id, customer_id })
      : await lockWallet(transaction, scope, id);
    const before = await findDone(transaction, wallet, request);
    if (before) return before;
    checkActive(wallet);
    const plan = await planTopUp(transaction, wallet, { request, author });
    if (plan.reason === 'PURCHASED_CREDIT_INVOICED') return buyCredits(transaction, wallet, { ...plan, author });
    return applyTopUp(transaction, wallet, {
      ...plan,
      author,
      reference: { reference_type: 'EXTERNAL', reference_id: plan.key },
    });
  };
  return retryTransaction(stores, attempt);
}

export type TopUpPlan = {
  readonly reason: TransactionReason;
  readonly key: MovementKey;
  readonly credits: Decimal;
  /** Money to pay for the credits. */
  readonly price: Decimal;
  readonly expiry_date: string | null;
  readonly bonus: Bonus | null;
  readonly request: Pick<TopUp, 'priority' | 'description' | 'metadata'> & Partial<Pick<TopUp, 'checkout'>>;
};

/** Plans a top-up; refuses every invalid input before anything is written. */
async function planTopUp(
  transaction: Transaction,
  wallet: WalletModel,
  { request, author }: { request: TopUp; author: Author },
): Promise<TopUpPlan> {
  const { transaction_reason: reason } = request;
  if (!(TOP_UP_REASONS as readonly string[]).includes(reason))
    throw invalid('transaction_reason', `${reason} does not put credits in`, { allowed: TOP_UP_REASONS });
  if (request.checkout !== null) checkCheckoutParams(request.checkout, 'checkout.');
  if (request.checkout !== null && reason !== 'PURCHASED_CREDIT_INVOICED')
    throw invalid('checkout', 'is only for credits that are bought with an invoice: PURCHASED_CREDIT_INVOICED');
  if (request.force_sync_invoice) throw invalid('force_sync_invoice', 'is not supported yet');
  const { credits, price } = computeAmounts(wallet, request);
  const expiry_date = parseExpiry(
    { instant: request.expiry_date_utc, day: request.expiry_date },
    { instant: 'expiry_date_utc', day: 'expiry_date' },
    author.now,
  );
  const bonus = await loadBonus(transaction, wallet, { request, credits, now: author.now });
  const key = request.idempotency_key ?? buildRequestKey(author.now);
  return { reason, key, credits, price, expiry_date, bonus, request };
}

/** Builds the key of a purchase from that of its checkout, for a request without a key of its own. */
function toCheckoutKey({ checkout }: TopUp): MovementKey | null {
  return checkout?.idempotency_key ? toOwnKey('checkout', checkout.idempotency_key) : null;
}

/** Builds the key of a request that has none. */
function buildRequestKey(now: Date): MovementKey {
  return toOwnKey('request', newId('request', now.getTime()));
}

function computeAmounts(wallet: WalletModel, { credits_to_add, amount }: TopUp) {
  const rate = wallet.topup_conversion_rate;
  if (credits_to_add !== null) {
    const credits = checkCredits('credits_to_add', credits_to_add);
    return { credits, price: roundMoney(credits.times(rate), wallet.currency) };
  }
  if (amount === null) throw invalid('credits_to_add', 'is required, or amount');
  const paid = new Decimal(amount);
  if (paid.lte(0)) throw invalid('amount', 'must be more than 0');
  if (!roundMoney(paid, wallet.currency).eq(paid)) throw invalid('amount', `has more decimals than ${wallet.currency}`);
  return { credits: toCredits(paid, rate), price: paid };
}

const BOUGHT: readonly TransactionReason[] = ['PURCHASED_CREDIT_INVOICED', 'PURCHASED_CREDIT_DIRECT'];

async function loadBonus(
  transaction: Transaction,
  wallet: WalletModel,
  { request, credits, now }: { request: TopUp; credits: Decimal; now: Date },
): Promise<Bonus | null> {
  const requested_bonus = request.bonus_credits_to_add;
  const instant = request.bonus_credits_expiry_date_utc;
  const fields = { instant: 'bonus_credits_expiry_date_utc', day: 'bonus_credits_expiry_date_utc' };
  const expiry_date = parseExpiry({ instant, day: null }, fields, now);
  if (!BOUGHT.includes(request.transaction_reason)) {
    if (requested_bonus !== null) throw invalid('bonus_credits_to_add', 'goes with credits that are bought');
    return null;
  }
  if (requested_bonus === null)
    return computeBonus(credits, await loadSetting(wallet, 'bonus_credits_topup_config', transaction), now);
  const bonus = new Decimal(requested_bonus);
  return bonus.isZero() ? null : { credits: checkCredits('bonus_credits_to_add', bonus), expiry_date };
}

type TopUpContext = TopUpPlan & { readonly author: Author };
type MovementReference = Pick<CreditMovement, 'reference_type' | 'reference_id'>;

/** Builds the credit and its bonus, whose key is derived from the credit's key. */
export function buildMovements(
  { reason, key, credits, expiry_date, bonus, request, author }: TopUpContext,
  reference: MovementReference,
): CreditMovement[] {
  const { priority, description, metadata } = request;
  const saying = { ...reference, description: description ?? '', author, priority };
  const bought: CreditMovement = {
    ...saying,
    movement: { kind: 'credit', credits },
    transaction_reason: reason,
    idempotency_key: key,
    metadata,
    expiry_date,
  };
  if (bonus === null) return [bought];
  return [
    bought,
    {
      ...saying,
      movement: { kind: 'credit', credits: bonus.credits },
      transaction_reason: 'PURCHASED_CREDIT_BONUS',
      idempotency_key: toOwnKey('bonus', key),
      metadata: null,
      expiry_date: bonus.expiry_date,
    },
  ];
}

async function applyTopUp(
  transaction: Transaction,
  wallet: WalletModel,
  doing: TopUpContext & { readonly reference: MovementReference; readonly invoice_id?: string },
): Promise<TopUpResult> {
  const { moved, wallet: after } = await moveAll(transaction, wallet, buildMovements(doing, doing.reference));
  const refused = moved.find((one) => one instanceof Error);
  if (refused) throw refused;
  const [first] = moved as { transaction: WalletTransactionModel }[];
  return { wallet: after, wallet_transaction: first!.transaction, invoice_id: doing.invoice_id ?? null };
}

/** Buys credits on request; with a checkout, the customer pays the invoice on a page. */
async function buyCredits(transaction: Transaction, wallet: WalletModel, doing: TopUpContext): Promise<TopUpResult> {
  const { checkout } = doing.request;
  if (!checkout) return buyWithInvoice(transaction, wallet, doing);
  await checkNoWalletCheckout(transaction, wallet);
  const bought = await buyWithInvoice(transaction, wallet, { ...doing, isPaidLater: true });
  await addPurchaseCheckout(transaction, wallet, { ...bought, checkout, author: doing.author });
  return bought;
}

/** Creates a finalized, unpaid invoice. A setting of `invoice_config` creates it paid, and the credits arrive at once. */
export async function buyWithInvoice(
  transaction: Transaction,
  wallet: WalletModel,
  doing: TopUpContext & { readonly isAutomatic?: boolean; readonly isPaidLater?: boolean },
): Promise<TopUpResult> {
  const config = await loadSetting(wallet, 'invoice_config', transaction);
  const isPaid = config.auto_complete_purchased_credit_transaction && !doing.isPaidLater;
  const draft = await createPurchaseDraft(transaction, wallet, { ...doing, isPaid });
  const reference: MovementReference = { reference_type: 'INVOICE', reference_id: draft.id };
  const pending = isPaid ? null : await addPending(transaction, wallet, buildMovements(doing, reference));
  if (pending === null) return applyTopUp(transaction, wallet, { ...doing, reference, invoice_id: draft.id });
  await finalizeWithin(transaction, wallet, { invoice_id: draft.id, now: doing.author.now });
  return { wallet, wallet_transaction: pending[0]!, invoice_id: draft.id };
}

async function createPurchaseDraft(
  transaction: Transaction,
  wallet: WalletModel,
  { key, credits, price, author, isPaid, isAutomatic }: TopUpContext & { isPaid: boolean; isAutomatic?: boolean },
): Promise<InvoiceWithLines> {
  if (price.lte(0)) throw invalid('credits_to_add', `costs less than the smallest unit of ${wallet.currency}`);
  const amount = price.toFixed();
  const request = createInvoiceShape.parse({
    customer_id: wallet.customer_id,
    currency: wallet.currency,
    amount_due: amount,
    total: amount,
    subtotal: amount,
    invoice_type: 'ONE_OFF',
    billing_reason: isAutomatic ? 'WALLET_AUTO_TOPUP' : 'MANUAL',
    description: 'Purchase of credits',
    metadata: { wallet_id: wallet.id },
    // An invoice that counts as paid is finalized at once: a draft cannot be paid.
    ...(isPaid ? { payment_status: 'SUCCEEDED', invoice_status: 'FINALIZED' } : {}),
    line_items: [{ display_name: `${credits.toFixed()} credits`, amount, quantity: '1' }],
  });
  const keyed = { ...request, idempotency_key: toPurchaseKey(wallet.id, key) };
  return createInvoiceWithin(transaction, wallet, { request: keyed, author });
}

/**
 * Returns the answer to the first request with the key, with the balances of that time; null if there was none. A purchase that was paid
 * since is returned as it is now.
 */
async function findDone(transaction: Transaction, wallet: WalletModel, request: TopUp): Promise<TopUpResult | null> {
  const { idempotency_key: key, transaction_reason } = request;
  if (key === null) return null;
  const [before] = await WalletTransactionModel.in(wallet, transaction).where({ idempotency_key: key });
  if (!before) return null;
  checkSame({ transaction_reason }, wallet, before);
  checkAmount(computeAmounts(wallet, request).credits, before.credit_amount);
  const [bonus] = await WalletTransactionModel.in(wallet, transaction)
    .where({ wallet_id: wallet.id })
    .whereIn('idempotency_key', listOwnKeys('bonus', key));
  const credits_available = (await putInto(before, transaction)).toFixed();
  const wallet_transaction = Object.assign(Object.create(Object.getPrototypeOf(before)), before, { credits_available });
  const invoice_id = before.reference_type === 'INVOICE' ? before.reference_id : null;
  // The bonus is posted after the credit, so its balance is the last.
  return { wallet: restoreWallet(wallet, bonus ?? before), wallet_transaction, invoice_id };
}
