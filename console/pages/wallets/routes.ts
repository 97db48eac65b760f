import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';

/** `sheet` is the sheet that is open; `customer` is the id for which a new wallet is proposed. */
export type WalletsSearch = { show?: 'active' | 'closed'; sheet?: 'new'; customer?: string };

const wallets = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/wallets',
  validateSearch: (input: SearchInput): WalletsSearch =>
    compact({
      show: readOneOf(input, 'show', ['active', 'closed']),
      sheet: readOneOf(input, 'sheet', ['new']),
      customer: readText(input, 'customer'),
    }),
  component: lazyRouteComponent(() => import('./wallets-page.tsx'), 'WalletsPage'),
});

const DEEDS = ['top-up', 'debit', 'close'] as const;
/** `why` explains the balance after usage; `do` is the open dialogue. */
export type WalletSearch = { why?: 'balance'; sheet?: 'record'; do?: (typeof DEEDS)[number]; movements?: 'in' | 'out' };

const wallet = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/wallets/$wallet_id',
  validateSearch: (input: SearchInput): WalletSearch =>
    compact({
      why: readOneOf(input, 'why', ['balance']),
      sheet: readOneOf(input, 'sheet', ['record']),
      do: readOneOf(input, 'do', DEEDS),
      movements: readOneOf(input, 'movements', ['in', 'out']),
    }),
  component: lazyRouteComponent(() => import('./wallet-page.tsx'), 'WalletPage'),
});

export const walletsRoutes = [wallets, wallet] as const;
