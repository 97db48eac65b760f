import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';

const wallets = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/wallets',
  component: lazyRouteComponent(() => import('./wallets-page.tsx'), 'WalletsPage'),
});

const wallet = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/wallets/$wallet_id',
  component: lazyRouteComponent(() => import('./wallet-page.tsx'), 'WalletPage'),
});

export const walletsRoutes = [wallets, wallet] as const;
