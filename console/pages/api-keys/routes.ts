import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';

const SHEETS = ['new', 'key', 'rotate'] as const;

/** `sheet` is the sheet that is open; `key` is the key that it is about. */
export type ApiKeysSearch = { sheet?: (typeof SHEETS)[number]; key?: string };

const apiKeys = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/api-keys',
  validateSearch: (input: SearchInput): ApiKeysSearch =>
    compact({ sheet: readOneOf(input, 'sheet', SHEETS), key: readText(input, 'key') }),
  component: lazyRouteComponent(() => import('./api-keys-page.tsx'), 'ApiKeysPage'),
});

export const apiKeysRoutes = [apiKeys] as const;
