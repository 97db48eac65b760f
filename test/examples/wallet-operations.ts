/** The operations of wallets: through the interface, but for what is a sum or a choice of its own. */
import { z } from 'zod';
import { moveCredits } from '../../actions/credits/wallets/move-credits.ts';
import { autoTopUp } from '../../actions/lifecycle/wallets/auto-top-up.ts';
import { computeBonus } from '../../core/credits/wallet/bonus.ts';
import { callersKey } from '../../core/credits/wallet/movement-key.ts';
import { computeRealTimeBalance } from '../../core/credits/wallet/real-time.ts';
import type { Wallet as WalletRecord } from '../../core/credits/wallet/record.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { checkCredits } from '../../core/rating/wallet/rates.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import type { AnswerTo, Wallet } from '../support/answers.ts';
import type { World } from '../support/world.ts';
import type { Result } from './compare.ts';
import { exampleWorld, freshName } from './example-world.ts';

const amount = z.coerce.string();
const PAST = '2025-01-01T00:00:00Z';

async function send<Path extends string, Method extends string = 'POST'>(
  world: World,
  path: Path,
  body: object,
  method: Method = 'POST' as Method,
) {
  const answer = await world.api.request(method, path, { body });
  if (answer.status >= 400) throw Object.assign(new Error(answer.text), answer.body);
  return answer.body as AnswerTo<Method, Path>;
}

/** Of a new customer. */
async function makeWallet(world: World, fields: object = {}) {
  const external_customer_id = freshName();
  await world.customer(external_customer_id);
  return send(world, '/wallets', { external_customer_id, currency: 'usd', ...fields });
}

const errorOf = (error: unknown) => ({ error_code: (error as { code: string }).code });
const walletNow = (world: World, { id }: { id: string }) => world.get(`/wallets/${id}`);

export async function topUp(given: Result): Promise<Result> {
  const { conversion_rate, topup_conversion_rate, opening_credits, auto_complete, reason, expiry_date, ...said } = z
    .object({
      conversion_rate: amount.optional(),
      topup_conversion_rate: amount.optional(),
      opening_credits: amount.optional(),
      credits_to_add: amount.optional(),
      amount: amount.optional(),
      bonus_credits_to_add: amount.optional(),
      expiry_date: z.coerce.number().optional(),
      priority: z.coerce.number().optional(),
      reason: z.string().default('FREE_CREDIT_GRANT'),
      auto_complete: z.boolean().optional(),
    })
    .parse(withoutNulls(given));
  const world = await exampleWorld();
  const rates = {
    ...(conversion_rate && { conversion_rate }),
    ...(topup_conversion_rate && { topup_conversion_rate }),
  };
  const wallet = await makeWallet(world, {
    ...rates,
    ...(opening_credits && { initial_credits_to_load: opening_credits }),
  });
  const value = { auto_complete_purchased_credit_transaction: auto_complete ?? false };
  await send(world, '/settings/invoice_config', { value }, 'PUT');
  try {
    const body = { ...said, transaction_reason: reason, ...(expiry_date && { expiry_date }) };
    const done = await send(world, `/wallets/${wallet.id}/top-up`, body);
    const { balance, credit_balance } = await walletNow(world, wallet);
    const paid = done.invoice_id ? await payAndLook(world, wallet, done.invoice_id) : {};
    const { credit_amount, expiry_date: expires_at, priority } = done.wallet_transaction!;
    return {
      balance,
      credit_balance,
      credits_added: credit_amount,
      expires_at,
      transaction_priority: priority,
      ...paid,
    };
  } catch (error) {
    return errorOf(error);
  }
}

async function payAndLook(world: World, wallet: Wallet, invoice_id: string): Promise<Result> {
  const invoice = await world.get(`/invoices/${invoice_id}`);
  if (invoice.payment_status !== 'SUCCEEDED')
    await send(world, `/invoices/${invoice_id}/payment`, { payment_status: 'SUCCEEDED' }, 'PUT');
  return { after_invoice_paid: (await walletNow(world, wallet)).credit_balance };
}

export async function credit(given: Result): Promise<Result> {
  const { conversion_rate, credits } = z
    .object({ conversion_rate: amount.optional(), credits: amount })
    .parse(withoutNulls(given));
  const world = await exampleWorld();
  const wallet = await makeWallet(world, { ...(conversion_rate && { conversion_rate }) });
  try {
    const body = { credits_to_add: credits, transaction_reason: 'FREE_CREDIT_GRANT' };
    const { wallet_transaction } = await send(world, `/wallets/${wallet.id}/top-up`, body);
    const { balance, credit_balance } = await walletNow(world, wallet);
    return { balance, credit_balance, transaction_amount: wallet_transaction!.amount };
  } catch (error) {
    return { ...errorOf(error), credit_balance: (await walletNow(world, wallet)).credit_balance };
  }
}

const lot = z.object({
  id: z.string(),
  amount,
  priority: z.coerce.number().nullish(),
  expires: z.string().nullish(),
});

export async function debit(given: Result): Promise<Result> {
  const stated = z
    .object({
      conversion_rate: amount.optional(),
      opening_credits: amount.optional(),
      credits: z.union([z.array(lot), amount]).optional(),
      debit: amount.optional(),
      reason: z.string().default('MANUAL_BALANCE_DEBIT'),
      now: z.string().default('2026-03-15T12:00:00Z'),
    })
    .parse(withoutNulls(given));
  const world = await exampleWorld();
  world.at(PAST);
  const { conversion_rate, opening_credits: initial_credits_to_load } = stated;
  const wallet = await makeWallet(world, {
    ...(conversion_rate && { conversion_rate }),
    ...(initial_credits_to_load && { initial_credits_to_load }),
  });
  const names = new Map<string, string>();
  for (const { id, amount: credits_to_add, priority, expires } of Array.isArray(stated.credits) ? stated.credits : []) {
    const body = {
      credits_to_add,
      transaction_reason: 'FREE_CREDIT_GRANT',
      ...(priority === undefined || priority === null ? {} : { priority }),
    };
    const expiry = expires ? { expiry_date_utc: expires.length === 10 ? `${expires}T00:00:00Z` : expires } : {};
    const { wallet_transaction } = await send(world, `/wallets/${wallet.id}/top-up`, { ...body, ...expiry });
    names.set(wallet_transaction!.id, id);
  }
  world.at(stated.now);
  const credits = stated.debit ?? (stated.credits as string);
  // Lots of their own show the order alone; where nothing was said of a debit by hand it may not go below 0.
  const allow_negative = !Array.isArray(stated.credits);
  const result = await tried(world, wallet, { credits, reason: stated.reason, allow_negative });
  const { balance, credit_balance } = await walletNow(world, wallet);
  if ('error_code' in result) return { ...result, balance, credit_balance };
  const { items } = await world.get(`/wallets/${wallet.id}/transactions?limit=1000`);
  const usable = items.filter(({ expiry_date }) => !expiry_date || expiry_date >= new Date(stated.now).toISOString());
  const left = usable.reduce((sum: Decimal, { credits_available }) => sum.plus(credits_available), new Decimal(0));
  const consumed = result.consumed.map(({ id, amount: taken }) => ({ id: names.get(id) ?? id, amount: taken }));
  return { balance, credit_balance, consumed, remaining_total: left.toFixed(), transaction_amount: result.amount };
}

/** By hand through the interface, for another reason as it is done inside. */
async function tried(
  world: World,
  wallet: Wallet,
  { credits, reason, allow_negative }: { credits: string; reason: string; allow_negative: boolean },
) {
  try {
    const key = { idempotency_key: callersKey.parse(freshName()) };
    if (reason === 'MANUAL_BALANCE_DEBIT') {
      const body = { credits, transaction_reason: reason, allow_negative, ...key };
      const { wallet_transaction } = await send(world, `/wallets/${wallet.id}/debit`, body);
      return taken(wallet_transaction);
    }
    const author = { user_id: '', now: world.now };
    return await world.api.services.postgres.transaction(async (transaction) => {
      const held = await WalletModel.fetch(world.api.scope, wallet.id, { database: transaction, lock: true });
      const movement = {
        kind: 'spend' as const,
        credits: checkCredits('credits', credits),
        at_ms: world.now.getTime(),
      };
      const reference = { reference_type: 'INVOICE', reference_id: 'inv_1' } as const;
      const said = { transaction_reason: 'INVOICE_PAYMENT', description: '', metadata: null, author } as const;
      return taken((await moveCredits(transaction, held, { movement, ...said, ...reference, ...key })).transaction);
    });
  } catch (error) {
    return errorOf(error);
  }
}

function taken({ metadata, amount: money }: { metadata?: Record<string, string> | null; amount: string }) {
  const ids: string[] = metadata!.consumed_credit_tx_ids?.split(',') ?? [];
  const credits: string[] = metadata!.consumed_credits?.split(',') ?? [];
  return { amount: money, consumed: ids.map((id, index) => ({ id, amount: credits[index] })) };
}

export async function debitTwice(given: Result): Promise<Result> {
  const { opening_credits, credits } = z.object({ opening_credits: amount, credits: amount }).parse(given);
  const world = await exampleWorld();
  const wallet = await makeWallet(world, { initial_credits_to_load: opening_credits });
  const body = { credits, transaction_reason: 'MANUAL_BALANCE_DEBIT', idempotency_key: freshName() };
  const first = await send(world, `/wallets/${wallet.id}/debit`, body);
  const second = await send(world, `/wallets/${wallet.id}/debit`, body);
  if (JSON.stringify(first) !== JSON.stringify(second)) throw new Error('another answer');
  const { items } = await world.get(`/wallets/${wallet.id}/transactions?type=debit`);
  return { credit_balance: (await walletNow(world, wallet)).credit_balance, debit_transactions: items.length };
}

const line = z.object({
  type: z.string(),
  amount,
  credits_applied: amount.default('0'),
  discount: amount.default('0'),
});
const unpaid = z.object({ amount_paid: amount, amount_remaining: amount, lines: z.array(line).default([]) });

export function balanceInRealTime(given: Result): Result {
  const stated = z
    .object({
      wallet_type: z.enum(['PRE_PAID', 'POST_PAID']).default('PRE_PAID'),
      wallet_status: z.enum(['active', 'frozen', 'closed']).default('active'),
      allowed_price_types: z.array(z.enum(['ALL', 'USAGE', 'FIXED'])).nullish(),
      wallet_balance: amount,
      unpaid_invoices: z.array(unpaid).default([]),
      current_usage: amount.default('0'),
    })
    .parse(withoutNulls(given));
  const { wallet_type, wallet_status, wallet_balance: balance } = stated;
  const config = { allowed_price_types: stated.allowed_price_types ?? null };
  const wallet = { wallet_type, wallet_status, balance, config, conversion_rate: '1' } satisfies Partial<WalletRecord>;
  const invoices = stated.unpaid_invoices.map(({ amount_paid, amount_remaining, lines }) => ({
    amount_paid: new Decimal(amount_paid),
    amount_remaining: new Decimal(amount_remaining),
    lines: lines.map((one) => ({
      price_type: one.type,
      amount: new Decimal(one.amount),
      credits_applied: new Decimal(one.credits_applied),
      discount: new Decimal(one.discount),
    })),
  }));
  const current_usage = new Decimal(stated.current_usage);
  const { real_time_balance } = computeRealTimeBalance(wallet, { current_usage, unpaid: invoices });
  return { real_time_balance };
}

export async function create(given: Result): Promise<Result> {
  const one = z.object({ currency: z.string(), type: z.string(), status: z.string().default('active') });
  const { existing, new: wanted } = z
    .object({ existing: z.array(one).default([]), new: one })
    .parse(withoutNulls(given));
  const world = await exampleWorld();
  const external_customer_id = freshName();
  await world.customer(external_customer_id);
  const make = ({ currency, type: wallet_type }: z.output<typeof one>) =>
    send(world, '/wallets', { external_customer_id, currency, wallet_type });
  for (const before of existing) {
    const { id } = await make(before);
    if (before.status === 'closed') await send(world, `/wallets/${id}/terminate`, {});
  }
  try {
    await make(wanted);
    return { created: true };
  } catch (error) {
    const { code: error_code, http_status_code: http_status } = error as { code: string; http_status_code: number };
    return { error_code, http_status };
  }
}

export async function modify(given: Result): Promise<Result> {
  const stated = z
    .object({
      modification_type: z.string(),
      credit_balance: amount.default('0'),
      conversion_rate: amount.default('1'),
      wallet_type: z.string().default('PRE_PAID'),
    })
    .parse(withoutNulls(given));
  const world = await exampleWorld();
  const { wallet_type, conversion_rate, credit_balance: initial_credits_to_load, modification_type } = stated;
  const wallet = await makeWallet(world, { wallet_type, conversion_rate, initial_credits_to_load });
  try {
    const done = await send(world, `/wallets/${wallet.id}/modify`, { modification_type });
    const { original_wallet, new_wallet } = done;
    return {
      original_wallet: { status: original_wallet!.wallet_status, credit_balance: original_wallet!.credit_balance },
      new_wallet: {
        type: new_wallet!.wallet_type,
        status: new_wallet!.wallet_status,
        credit_balance: new_wallet!.credit_balance,
      },
    };
  } catch (error) {
    return errorOf(error);
  }
}

export function bonus(given: Result): Result {
  const slab = z.object({
    threshold: amount,
    bonus: z.object({ type: z.enum(['flat', 'percentage']), value: amount }),
  });
  const { slabs, credits_purchased } = z.object({ slabs: z.array(slab), credits_purchased: amount }).parse(given);
  const asSet = slabs.map((one) => ({
    ...one,
    operator: 'gte' as const,
    expiration_duration: null,
    expiration_duration_unit: null,
  }));
  const made = computeBonus(new Decimal(credits_purchased), { enabled: true, slabs: asSet }, new Date(PAST));
  return { bonus: made?.credits.toFixed() ?? '0' };
}

export function breakdown(given: Result): Promise<Result> {
  return shownBreakdown(given);
}

async function shownBreakdown(given: Result): Promise<Result> {
  const one = z.object({ amount, reason: z.string() });
  const { credits } = z.object({ credits: z.array(one) }).parse(given);
  const world = await exampleWorld();
  const wallet = await makeWallet(world);
  for (const { amount: credits_to_add, reason: transaction_reason } of credits)
    await send(world, `/wallets/${wallet.id}/top-up`, { credits_to_add, transaction_reason });
  const { credits_available_breakdown } = await world.get(
    `/wallets/${wallet.id}/balance/real-time?expand=credits_available_breakdown`,
  );
  return credits_available_breakdown!;
}

export async function autoTopup(given: Result): Promise<Result> {
  const { given: said } = z.object({ given: z.record(z.string(), z.unknown()).optional() }).parse(given);
  const stated = z
    .object({
      mode: z.enum(['direct', 'invoiced']),
      threshold: amount,
      amount: amount.default('1'),
      balance: amount,
      cooldown: z.string().nullish(),
      pending_auto_topup_invoice: z.boolean().nullish(),
      previous_auto_topup_invoice: z.string().nullish(),
      pending_auto_topup_transaction: z.boolean().nullish(),
    })
    .parse(said ?? given);
  const world = await exampleWorld();
  const cooldown = stated.cooldown ? { cooldown: { value: 1, unit: stated.cooldown.split(' ')[1] } } : {};
  const { threshold, amount: each, mode } = stated;
  const auto_topup = { enabled: true, threshold, amount: each, invoicing: mode === 'invoiced', ...cooldown };
  const wallet = await makeWallet(world, { initial_credits_to_load: stated.balance, auto_topup });
  const look = () => autoTopUp(world.api.services, world.api.scope, { id: wallet.id, now: world.now });
  const invoices = async () => (await world.get(`/invoices?customer_id=${wallet.customer_id}&limit=100`)).items;
  if (stated.pending_auto_topup_invoice || stated.pending_auto_topup_transaction || stated.previous_auto_topup_invoice)
    await look();
  if (stated.previous_auto_topup_invoice === 'paid') {
    const { id } = (await invoices())[0]!;
    await send(world, `/invoices/${id}/payment`, { payment_status: 'SUCCEEDED' }, 'PUT');
  }
  const before = (await invoices()).length;
  const top_ups = await look();
  const after = await invoices();
  return {
    top_ups,
    credit_balance: (await walletNow(world, wallet)).credit_balance,
    new_invoices: after.length - before,
    billing_reason: after[0]?.billing_reason,
  };
}

/** What an attempt to collect pays, of an invoice that nothing else can be charged for. */
export async function payWithWallets(given: Result): Promise<Result> {
  const stated = z
    .object({ currency: z.string(), postpaid_balance: amount, prepaid_balance: amount, invoice_amount: amount })
    .parse(given);
  const { currency, invoice_amount: total } = stated;
  const world = await exampleWorld();
  const external_customer_id = freshName();
  await world.customer(external_customer_id);
  const make = (wallet_type: string, initial_credits_to_load: string) =>
    send(world, '/wallets', { external_customer_id, currency, wallet_type, initial_credits_to_load });
  await make('POST_PAID', stated.postpaid_balance);
  const prepaid = await make('PRE_PAID', stated.prepaid_balance);
  const { customer_id } = prepaid;
  const amounts = { amount_due: total, total, subtotal: total };
  const { id } = await send(world, '/invoices', { customer_id, currency, ...amounts, invoice_status: 'FINALIZED' });
  await send(world, `/invoices/${id}/payment/attempt`, {});
  const { amount_paid: paid } = await world.get(`/invoices/${id}`);
  const { credit_balance } = await walletNow(world, prepaid);
  return { paid, prepaid_used: new Decimal(stated.prepaid_balance).minus(credit_balance).toFixed() };
}

function withoutNulls(given: Result): Result {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== null && value !== undefined && value !== ''),
  );
}
