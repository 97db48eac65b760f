import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { AUDIT_ACTIONS } from '../../../core/platform/audit/kinds.ts';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';

export const SETTINGS_TABS = [
  'company',
  'numbering',
  'tax',
  'mail',
  'account',
  'team',
  'environments',
  'audit',
] as const;
export type SettingsTab = (typeof SETTINGS_TABS)[number];
const SHEETS = ['new', 'open', 'copy'] as const;
export const AUDIT_REACHES = ['environment', 'tenant'] as const;

/** `sheet` is the sheet that is open and `id` the record that it is about; `reach`, `kind` and `action` filter the audit log. */
export type SettingsSearch = {
  tab?: SettingsTab;
  sheet?: (typeof SHEETS)[number];
  id?: string;
  reach?: (typeof AUDIT_REACHES)[number];
  kind?: string;
  action?: (typeof AUDIT_ACTIONS)[number];
};

const settings = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/settings',
  validateSearch: (input: SearchInput): SettingsSearch =>
    compact({
      tab: readOneOf(input, 'tab', SETTINGS_TABS),
      sheet: readOneOf(input, 'sheet', SHEETS),
      id: readText(input, 'id'),
      reach: readOneOf(input, 'reach', AUDIT_REACHES),
      kind: readText(input, 'kind'),
      action: readOneOf(input, 'action', AUDIT_ACTIONS),
    }),
  component: lazyRouteComponent(() => import('./settings-page.tsx'), 'SettingsPage'),
});

export const settingsRoutes = [settings] as const;
