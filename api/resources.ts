/** All routes of the API, one line per module of routes. Their order does not matter, because http/mount.ts puts static paths first. */

import { alertRoutes } from './alerts/routes.ts';
import { addonRoutes } from './catalog/addons/routes.ts';
import { couponRoutes } from './catalog/coupons/routes.ts';
import { customerRoutes } from './catalog/customers/routes.ts';
import { featureRoutes } from './catalog/features/routes.ts';
import { groupRoutes } from './catalog/groups/routes.ts';
import { aiRoutes } from './catalog/parsing/routes.ts';
import { planRoutes } from './catalog/plans/routes.ts';
import { priceUnitRoutes } from './catalog/price-units/routes.ts';
import { priceRoutes } from './catalog/prices/routes.ts';
import { taxRoutes } from './catalog/taxes/routes.ts';
import { creditGrantRoutes } from './credits/credit-grants/routes.ts';
import { walletRoutes } from './credits/wallets/routes.ts';
import { oauthRoutes } from './delivery/connections/oauth-routes.ts';
import { connectionRoutes } from './delivery/connections/routes.ts';
import { inboundWebhookRoutes } from './delivery/inbound/routes.ts';
import { integrationRoutes } from './delivery/integrations/routes.ts';
import { webhookRoutes } from './delivery/webhooks/routes.ts';
import { workflowRoutes } from './foundation/workflows/routes.ts';
import type { Route } from './http/route.ts';
import { creditNoteRoutes } from './invoicing/credit-notes/routes.ts';
import { documentRoutes } from './invoicing/documents/routes.ts';
import { proofRoutes } from './invoicing/invoices/proof-routes.ts';
import { invoiceReprocessRoutes } from './invoicing/invoices/reprocess-routes.ts';
import { invoiceRoutes } from './invoicing/invoices/routes.ts';
import { subscriptionAddonRoutes } from './lifecycle/subscriptions/addon-routes.ts';
import { lineItemRoutes } from './lifecycle/subscriptions/line-item-routes.ts';
import { subscriptionRoutes } from './lifecycle/subscriptions/routes.ts';
import { eventRoutes } from './metering/events/routes.ts';
import { meterRoutes } from './metering/meters/routes.ts';
import { auditLogRoutes } from './operations/audit-logs/routes.ts';
import { authRoutes } from './operations/auth/routes.ts';
import { environmentRoutes } from './operations/environments/routes.ts';
import { rbacRoutes } from './operations/rbac/routes.ts';
import { integrationSecretRoutes } from './operations/secrets/integration-routes.ts';
import { secretRoutes } from './operations/secrets/routes.ts';
import { settingRoutes } from './operations/settings/routes.ts';
import { taskRoutes } from './operations/tasks/routes.ts';
import { tenantRoutes } from './operations/tenants/routes.ts';
import { userRoutes } from './operations/users/routes.ts';
import { checkoutRoutes } from './payments/checkout-routes.ts';
import { paymentRoutes } from './payments/routes.ts';
import { customerEntitlementRoutes } from './rating/entitlements/customer-routes.ts';
import { entitlementRoutes } from './rating/entitlements/routes.ts';
import { attentionRoutes } from './reporting/attention/routes.ts';
import { costsheetRoutes } from './reporting/costs/routes.ts';
import { receivablesRoutes } from './reporting/dashboard/receivables.ts';
import { dashboardRoutes } from './reporting/dashboard/routes.ts';
import { debuggerRoutes } from './reporting/events/debugger.ts';
import { lateEventRoutes } from './reporting/events/late.ts';
import { threadRoutes } from './reporting/events/thread.ts';
import { downloadRoutes } from './reporting/exports/file-routes.ts';
import { exportFileRoutes } from './reporting/exports/routes.ts';
import { meterUsageRoutes } from './reporting/meter-usage/routes.ts';
import { scheduledTaskRoutes } from './reporting/scheduled-tasks/routes.ts';
import { searchRoutes } from './reporting/search/routes.ts';
import { summaryRoutes } from './reporting/summaries/routes.ts';
import { analyticsRoutes } from './reporting/usage/analytics.ts';
import { exportRoutes } from './reporting/usage/export.ts';
import { reservationRoutes } from './reservations/routes.ts';
import { testClockRoutes } from './schedule/test-clocks/routes.ts';
import { customerSubscriptionRoutes } from './subscriptions/customer-routes.ts';

export const routes: Route[] = [
  ...meterRoutes,
  ...authRoutes,
  ...environmentRoutes,
  ...tenantRoutes,
  ...userRoutes,
  ...secretRoutes,
  ...integrationSecretRoutes,
  ...rbacRoutes,
  ...settingRoutes,
  ...customerRoutes,
  ...customerEntitlementRoutes,
  ...customerSubscriptionRoutes,
  ...featureRoutes,
  ...planRoutes,
  ...priceRoutes,
  ...priceUnitRoutes,
  ...groupRoutes,
  ...couponRoutes,
  ...taxRoutes,
  ...costsheetRoutes,
  ...dashboardRoutes,
  ...receivablesRoutes,
  ...attentionRoutes,
  ...summaryRoutes,
  ...searchRoutes,
  ...creditGrantRoutes,
  ...alertRoutes,
  ...addonRoutes,
  ...entitlementRoutes,
  ...reservationRoutes,
  ...lineItemRoutes,
  ...subscriptionAddonRoutes,
  ...subscriptionRoutes,
  ...invoiceRoutes,
  ...paymentRoutes,
  ...checkoutRoutes,
  ...invoiceReprocessRoutes,
  ...documentRoutes,
  ...creditNoteRoutes,
  ...proofRoutes,
  ...eventRoutes,
  ...meterUsageRoutes,
  ...analyticsRoutes,
  ...debuggerRoutes,
  ...threadRoutes,
  ...lateEventRoutes,
  ...exportRoutes,
  ...workflowRoutes,
  ...taskRoutes,
  ...scheduledTaskRoutes,
  ...downloadRoutes,
  ...exportFileRoutes,
  ...connectionRoutes,
  ...oauthRoutes,
  ...integrationRoutes,
  ...aiRoutes,
  ...walletRoutes,
  ...webhookRoutes,
  ...inboundWebhookRoutes,
  ...auditLogRoutes,
  ...testClockRoutes,
];
