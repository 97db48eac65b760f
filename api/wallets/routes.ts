/** Wallets, to be read: they are made by what is credited (docs/rules/wallets.md). */
import { CustomerModel } from '../../storage/models/customer.ts';
import { narrow } from '../../storage/models/page.ts';
import { WalletModel } from '../../storage/models/wallet.ts';
import { WalletTransactionModel } from '../../storage/models/wallet-transaction.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, type Route, route } from '../http/route.ts';
import {
  WalletAnswer,
  WalletsAnswer,
  WalletTransactionFilter,
  WalletTransactionListAnswer,
  walletTransactionGrammar,
} from './schema.ts';

const reads = { method: 'get', tag: 'Wallets', access: 'wallet:read', success: 200, params: idParams } as const;

export const walletRoutes: Route[] = [
  route({
    ...reads,
    path: '/wallets/:id',
    operation_id: 'getWallet',
    summary: 'Get a wallet',
    description: 'With its balance in money and in credits.',
    answer: WalletAnswer,
    handle: ({ params }, { scope, services }) => WalletModel.fetch(scope, params.id, { database: services.postgres }),
  }),
  route({
    ...reads,
    path: '/wallets/:id/transactions',
    operation_id: 'getWalletTransactions',
    summary: 'List the transactions of a wallet',
    description: 'Those that meet all conditions, a page at a time, newest first unless `sort` is stated.',
    query: WalletTransactionFilter,
    answer: WalletTransactionListAnswer,
    handle: ({ params, query }, context) => findTransactions(params.id, query, context),
  }),
  route({
    ...reads,
    path: '/customers/:id/wallets',
    operation_id: 'getCustomerWallets',
    summary: 'List the wallets of a customer',
    description: 'All of them, in the order in which they were made; an archived customer has its wallets still.',
    answer: WalletsAnswer,
    handle: async ({ params }, { scope, services }) => {
      const customer = await CustomerModel.fetch(scope, params.id, { database: services.postgres });
      return WalletModel.in(scope, services.postgres)
        .where({ customer_id: customer.id, status: 'published' })
        .orderBy(['created_at', 'id']);
    },
  }),
];

async function findTransactions(id: string, input: WalletTransactionFilter, { scope, services }: Context) {
  const wallet = await WalletModel.fetch(scope, id, { database: services.postgres });
  const query = narrow(WalletTransactionModel.in(scope, services.postgres), [
    ['wallet_id', wallet.id],
    ['id', input.id],
    ['type', input.type],
    ['transaction_status', input.transaction_status],
    ['transaction_reason', input.transaction_reason],
    ['reference_type', input.reference_type],
    ['reference_id', input.reference_id],
    ['credits_available', '>', input.credits_available_gt],
    ['expiry_date', '<', input.expiry_date_before],
    ['expiry_date', '>', input.expiry_date_after],
  ]);
  return fetchPage(query, input, walletTransactionGrammar);
}
