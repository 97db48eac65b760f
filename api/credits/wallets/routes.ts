/** Wallets: create, top up, debit, close, and list transactions (docs/rules/wallets.md). */

import { changeWallet } from '../../../actions/credits/wallets/change-wallet.ts';
import { convertWallet, terminateWallet } from '../../../actions/credits/wallets/close-wallet.ts';
import { createWallet } from '../../../actions/credits/wallets/create-wallet.ts';
import { debitWallet } from '../../../actions/credits/wallets/debit-wallet.ts';
import { findCachedOwed, loadWalletBalance } from '../../../actions/lifecycle/wallets/real-time-balance.ts';
import { topUpWallet } from '../../../actions/lifecycle/wallets/top-up.ts';
import { computeRealTimeBalance } from '../../../core/credits/wallet/real-time.ts';
import { WALLET_STATUSES } from '../../../core/credits/wallet/record.ts';
import { invalid, notFound } from '../../../core/foundation/error.ts';
import { STATUSES } from '../../../core/foundation/record.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { showCheckoutSession } from '../../foundation/checkout-session.ts';
import { withInnerKey } from '../../http/idempotency.ts';
import { checkExpand, fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import {
  BalanceQuery,
  CreateWallet,
  CustomerWalletsQuery,
  DebitWallet,
  ModifyWallet,
  ToppedUpAnswer,
  TopUpWallet,
  UpdateWallet,
  WalletAnswer,
  WalletBalanceAnswer,
  WalletBalancesAnswer,
  WalletDebited,
  WalletEnded,
  WalletExpand,
  WalletFilter,
  WalletListAnswer,
  WalletModified,
  WalletsAnswer,
  WalletTransactionFilter,
  WalletTransactionListAnswer,
  walletGrammar,
  walletTransactionGrammar,
} from './schema.ts';
import {
  showBalance,
  showCachedBalance,
  showRealTimeBalance,
  showTransaction,
  showTransactions,
  showWallet,
  showWallets,
} from './show.ts';

const tag = 'Wallets';

const wallets = standardRoutes({
  noun: 'wallet',
  tag,
  answer: WalletAnswer,
  model: WalletModel,
  show: (wallet: WalletModel, context) => showWallet(wallet, context),
  list: { filter: WalletFilter, answer: WalletListAnswer, find: findWallets },
});
const CLOSED = 'the wallet is closed';
const reads = { method: 'get', tag, access: 'wallet:read', success: 200, params: idParams } as const;
const verb = { method: 'post', tag, access: 'wallet:write', success: 200, params: idParams } as const;

export const walletRoutes: Route[] = [
  {
    ...wallets.create({
      summary: 'Create a wallet',
      description:
        'Creates a wallet. A customer may have one active wallet per type and currency; a second one is refused ' +
        'with 409. A `price_unit` sets currency and conversion rate.',
      body: CreateWallet,
      handle: ({ body }, context) =>
        createWallet(context.services, context.scope, { request: body, author: toAuthor(context) }),
    }),
    success: 200,
  },
  wallets.list,
  wallets.search,
  wallets.read({
    summary: 'Get a wallet',
    description: 'Returns the wallet with its balance in money and in credits.',
  }),
  wallets.change({
    summary: 'Update a wallet',
    description: 'Changes the sent fields only. The currency, the conversion rate and the customer cannot change.',
    body: UpdateWallet,
    handle: ({ params, body }, context) =>
      changeWallet(context.services, context.scope, { id: params.id, request: body, author: toAuthor(context) }),
  }),
  route({
    ...verb,
    path: '/wallets/:id/top-up',
    operation_id: 'topUpWallet',
    summary: 'Top up a wallet',
    description:
      'Adds a number of credits, or as many as an amount buys. PURCHASED_CREDIT_INVOICED creates a final invoice, ' +
      'and its payment adds the credits; other reasons add them at once. With `checkout` the customer pays on a ' +
      'page; refused with 409 if the wallet has an open checkout. A repeated key returns the first result.',
    body: TopUpWallet,
    answer: ToppedUpAnswer,
    idempotency: 'inner_key',
    handle: async ({ params, body }, context) => {
      const done = await topUpWallet(context.services, context.scope, {
        id: params.id,
        request: withInnerKey(body, context),
        author: toAuthor(context),
      });
      return {
        wallet_transaction: await showTransaction(done.wallet_transaction, context),
        invoice_id: done.invoice_id,
        wallet: await showWallet(done.wallet, context),
        checkout_session: done.checkout_session && (await showCheckoutSession(done.checkout_session, context)),
      };
    },
  }),
  route({
    ...verb,
    path: '/wallets/:id/debit',
    operation_id: 'debitWallet',
    summary: 'Debit a wallet',
    description:
      'Debits the whole number of credits, or none, in the order of use; `wallet_transaction` lists the sources. ' +
      'A repeated key debits nothing and returns the first result.',
    body: DebitWallet,
    answer: WalletDebited,
    idempotency: 'inner_key',
    handle: async ({ params, body }, context) => {
      const done = await debitWallet(context.services, context.scope, {
        id: params.id,
        request: withInnerKey(body, context),
        author: toAuthor(context),
      });
      const wallet_transaction = await showTransaction(done.wallet_transaction, context);
      return { ...(await showWallet(done.wallet, context)), wallet_transaction };
    },
  }),
  route({
    ...verb,
    path: '/wallets/:id/terminate',
    operation_id: 'terminateWallet',
    summary: 'Close a wallet',
    description:
      'Closes the wallet and writes off its balance. Refused while an unpaid invoice contains credits for it.',
    answer: WalletEnded,
    idempotency: {
      replay: async (_done, { params }, context) => ({ ...(await shownById(params.id, context)), message: CLOSED }),
    },
    handle: async ({ params }, context) => {
      const closed = await terminateWallet(context.services, context.scope, {
        id: params.id,
        author: toAuthor(context),
      });
      return { ...(await showWallet(closed, context)), message: CLOSED };
    },
  }),
  route({
    ...verb,
    path: '/wallets/:id/modify',
    operation_id: 'modifyWallet',
    summary: 'Convert a wallet to postpaid',
    description:
      'Closes a prepaid wallet and moves its credits to a new postpaid wallet, with their priorities and ' +
      'expiries. Refused with 409 if the customer has a postpaid wallet in the currency.',
    body: ModifyWallet,
    answer: WalletModified,
    idempotency: {
      replay: async (done, { params }, context) => ({
        original_wallet: await shownById(params.id, context),
        new_wallet: await shownById(done.made('wallet'), context),
      }),
    },
    handle: async ({ params }, context) => {
      const { id } = params;
      const done = await convertWallet(context.services, context.scope, { id, author: toAuthor(context) });
      return {
        original_wallet: await showWallet(done.original_wallet, context),
        new_wallet: await showWallet(done.new_wallet, context),
      };
    },
  }),
  balanceRoute('real-time', 'getWalletBalance'),
  balanceRoute('real-time-cached', 'getWalletBalanceCached'),
  route({
    ...reads,
    path: '/wallets/:id/transactions',
    operation_id: 'getWalletTransactions',
    summary: "List a wallet's transactions",
    description: 'Returns the transactions that meet all conditions, one page at a time. Default order: newest first.',
    query: WalletTransactionFilter,
    answer: WalletTransactionListAnswer,
    handle: async ({ params, query }, context) => {
      const { id } = await WalletModel.fetch(context.scope, params.id, { database: context.services.postgres });
      return findTransactions({ ...query, wallet_id: id }, context);
    },
  }),
  route({
    method: 'post',
    tag,
    access: 'wallet:read',
    success: 200,
    path: '/wallets/transactions/search',
    operation_id: 'queryWalletTransaction',
    summary: 'Search transactions of all wallets',
    description: 'Returns the transactions that meet all conditions, one page at a time. Default order: newest first.',
    query: WalletExpand,
    body: WalletTransactionFilter,
    answer: WalletTransactionListAnswer,
    handle: ({ body, query }, context) => findTransactions({ ...body, expand: body.expand ?? query.expand }, context),
  }),
  route({
    ...reads,
    path: '/customers/:id/wallets',
    operation_id: 'getCustomerWallets',
    summary: "List a customer's wallets",
    description: 'Returns all wallets in the order of creation, even those of an archived customer.',
    query: WalletExpand,
    answer: WalletsAnswer,
    handle: async ({ params, query }, context) => {
      const { scope, services } = context;
      const customer = await CustomerModel.fetch(scope, params.id, { database: services.postgres });
      checkExpand(query.expand ?? [], walletGrammar);
      return showWallets(await listCustomerWallets(customer.id, context), query.expand ?? [], context);
    },
  }),
  route({
    method: 'get',
    tag,
    access: 'wallet:read',
    success: 200,
    path: '/customers/wallets',
    operation_id: 'getCustomerWalletsByKey',
    summary: 'List wallets with real-time balances',
    description: 'Returns the wallets of the customer with `id` or `lookup_key`; exactly one of them is required.',
    query: CustomerWalletsQuery,
    answer: WalletBalancesAnswer,
    handle: async ({ query }, context) => {
      const { expand, include_real_time_balance: isRealTime = false } = query;
      checkExpand(expand ?? [], walletGrammar);
      const customer = await customerNamed(query, context);
      const found = await listCustomerWallets(customer.id, context);
      return Promise.all(found.map((wallet) => showBalance(wallet, { expand, isRealTime }, context)));
    },
  }),
];

function balanceRoute(path: string, operation_id: string): Route {
  return route({
    ...reads,
    path: `/wallets/:id/balance/${path}`,
    operation_id,
    summary: "Get a wallet's real-time balance",
    description:
      'Returns the balance minus usage of the current periods and minus unpaid invoices, as far as the wallet ' +
      'pays for their prices. The result is 0 for a wallet that is not active.',
    query: BalanceQuery,
    answer: WalletBalanceAnswer,
    readCached: ({ params, query }, { cache, now }) => {
      if ((query.expand ?? []).length > 0) return undefined;
      const known = findCachedOwed(cache, params.id);
      if (known === undefined) return undefined;
      const { wallet, owed } = known;
      const moment = {
        ...computeRealTimeBalance(wallet, owed),
        as_of: cache.as_of,
        balance_updated_at: now.toISOString(),
      };
      return { of: [wallet], show: showCachedBalance, moment };
    },
    handle: async ({ params, query }, context) => {
      const { scope, services, now } = context;
      checkExpand(query.expand ?? [], walletGrammar);
      const { wallet, realTime } = await loadWalletBalance(services, scope, { id: params.id, now });
      return showRealTimeBalance(await showWallet(wallet, context, query.expand), realTime, now);
    },
  });
}

async function shownById(id: string, context: Context) {
  return showWallet(await WalletModel.fetch(context.scope, id, { database: context.services.postgres }), context);
}

function listCustomerWallets(customer_id: string, { scope, services }: Context): Promise<WalletModel[]> {
  return WalletModel.in(scope, services.postgres)
    .where({ customer_id, status: 'published' })
    .orderBy(['created_at', 'id']) as unknown as Promise<WalletModel[]>;
}

async function customerNamed(
  { id, lookup_key }: { id?: string | undefined; lookup_key?: string | undefined },
  { scope, services }: Context,
): Promise<CustomerModel> {
  if (id && lookup_key) throw invalid('lookup_key', 'names the customer as id does: give one of them');
  if (!id && !lookup_key) throw invalid('id', 'is required as a query parameter, or lookup_key instead of it');
  if (id) return CustomerModel.fetch(scope, id, { database: services.postgres });
  const [customer] = await CustomerModel.in(scope, services.postgres).where({
    external_id: lookup_key!,
    status: 'published',
  });
  if (!customer) throw notFound('customer', lookup_key!);
  return customer;
}

/** Finds wallets. `status` is either a wallet status or a record status. */
async function findWallets({ status, ...input }: WalletFilter, context: Context) {
  const { scope, services } = context;
  const recordStatus = STATUSES.find((one) => one === status);
  const by_default = (await loadSetting(scope, 'wallet_balance_alert_config', services.postgres)).alert_enabled;
  const wallets =
    input.alert_enabled === undefined
      ? WalletModel.in(scope, services.postgres)
      : WalletModel.alerting(scope, { on: input.alert_enabled, by_default }, services.postgres);
  const query = narrow(wallets, [
    ['id', input.wallet_ids],
    ['wallet_status', (WALLET_STATUSES as readonly string[]).find((one) => one === status)],
  ]);
  const { items, pagination } = await fetchPage(query, { ...input, status: recordStatus }, walletGrammar);
  return { items: await showWallets(items, input.expand ?? [], context), pagination };
}

async function findTransactions(input: WalletTransactionFilter & { wallet_id?: string }, context: Context) {
  const { scope, services } = context;
  const query = narrow(WalletTransactionModel.in(scope, services.postgres), [
    ['wallet_id', input.wallet_id],
    ['id', input.id],
    ['type', input.type],
    ['transaction_status', input.transaction_status],
    ['transaction_reason', input.transaction_reason],
    ['reference_type', input.reference_type],
    ['reference_id', input.reference_id],
    ['credits_available', '>', input.credits_available_gt],
    ['expiry_date', '<', input.expiry_date_before],
    ['expiry_date', '>', input.expiry_date_after],
    ['priority', input.priority],
    ['created_by', input.created_by],
  ]);
  const { items, pagination } = await fetchPage(query, input, walletTransactionGrammar);
  return { items: await showTransactions(items, input.expand ?? [], context), pagination };
}
