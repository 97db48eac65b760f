/** List of the routes, one line per resource. Order does not matter; mount.ts puts static paths first. */
import { addonRoutes } from './addons/routes.ts';
import { aiRoutes } from './ai/routes.ts';
import { alertRoutes } from './alerts/routes.ts';
import { auditLogRoutes } from './audit-logs/routes.ts';
import { authRoutes } from './auth/routes.ts';
import { connectionRoutes } from './connections/routes.ts';
import { costsheetRoutes } from './costs/routes.ts';
import { couponRoutes } from './coupons/routes.ts';
import { creditNoteRoutes } from './credit-notes/routes.ts';
import { creditGrantRoutes } from './creditgrants/routes.ts';
import { customerRoutes } from './customers/routes.ts';
import { dashboardRoutes } from './dashboard/routes.ts';
import { entitlementRoutes } from './entitlements/routes.ts';
import { environmentRoutes } from './environments/routes.ts';
import { eventRoutes } from './events/routes.ts';
import { downloadRoutes } from './exports/file-routes.ts';
import { exportFileRoutes } from './exports/routes.ts';
import { featureRoutes } from './features/routes.ts';
import { groupRoutes } from './groups/routes.ts';
import type { Route } from './http/route.ts';
import { invoicePdfRoutes } from './invoices/pdf-routes.ts';
import { proofRoutes } from './invoices/proof-routes.ts';
import { invoiceReprocessRoutes } from './invoices/reprocess-routes.ts';
import { invoiceRoutes } from './invoices/routes.ts';
import { meterUsageRoutes } from './meter-usage/routes.ts';
import { meterRoutes } from './meters/routes.ts';
import { paymentRoutes } from './payments/routes.ts';
import { planRoutes } from './plans/routes.ts';
import { priceUnitRoutes } from './price-units/routes.ts';
import { priceRoutes } from './prices/routes.ts';
import { rbacRoutes } from './rbac/routes.ts';
import { reservationRoutes } from './reservations/routes.ts';
import { scheduledTaskRoutes } from './scheduled-tasks/routes.ts';
import { secretRoutes } from './secrets/routes.ts';
import { settingRoutes } from './settings/routes.ts';
import { subscriptionAddonRoutes } from './subscriptions/addon-routes.ts';
import { lineItemRoutes } from './subscriptions/line-item-routes.ts';
import { subscriptionRoutes } from './subscriptions/routes.ts';
import { taskRoutes } from './tasks/routes.ts';
import { taxRoutes } from './taxes/routes.ts';
import { tenantRoutes } from './tenants/routes.ts';
import { testClockRoutes } from './test-clocks/routes.ts';
import { userRoutes } from './users/routes.ts';
import { walletRoutes } from './wallets/routes.ts';
import { webhookRoutes } from './webhooks/routes.ts';
import { workflowRoutes } from './workflows/routes.ts';

export const routes: Route[] = [
  ...meterRoutes,
  ...authRoutes,
  ...environmentRoutes,
  ...tenantRoutes,
  ...userRoutes,
  ...secretRoutes,
  ...rbacRoutes,
  ...settingRoutes,
  ...customerRoutes,
  ...featureRoutes,
  ...planRoutes,
  ...priceRoutes,
  ...priceUnitRoutes,
  ...groupRoutes,
  ...couponRoutes,
  ...taxRoutes,
  ...costsheetRoutes,
  ...dashboardRoutes,
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
  ...invoiceReprocessRoutes,
  ...invoicePdfRoutes,
  ...creditNoteRoutes,
  ...proofRoutes,
  ...eventRoutes,
  ...meterUsageRoutes,
  ...workflowRoutes,
  ...taskRoutes,
  ...scheduledTaskRoutes,
  ...downloadRoutes,
  ...exportFileRoutes,
  ...connectionRoutes,
  ...aiRoutes,
  ...walletRoutes,
  ...webhookRoutes,
  ...auditLogRoutes,
  ...testClockRoutes,
];
