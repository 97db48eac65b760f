/** Shapes of the answers on the wire, by method and path; test/interface/answers.test.ts compares them with those of the routes. */
import { z } from 'zod';
import { AlertLogListAnswer, AlertSettingAnswer, AlertSettingListAnswer } from '../../api/alerts/schema.ts';
import { AddonAnswer, AddonListAnswer } from '../../api/catalog/addons/schema.ts';
import {
  CouponAnswer,
  CouponAssociationAnswer,
  CouponAssociationListAnswer,
  CouponListAnswer,
} from '../../api/catalog/coupons/schema.ts';
import {
  CreditGrantAnswer,
  CreditGrantApplicationListAnswer,
  CreditGrantListAnswer,
} from '../../api/catalog/credit-grants/schema.ts';
import { CustomerAnswer, CustomerListAnswer } from '../../api/catalog/customers/schema.ts';
import {
  BulkEntitlementAnswer,
  EntitlementAnswer,
  EntitlementListAnswer,
  PlanEntitlementsAnswer,
} from '../../api/catalog/entitlements/schema.ts';
import { FeatureAnswer, FeatureListAnswer } from '../../api/catalog/features/schema.ts';
import { GroupAnswer, GroupListAnswer } from '../../api/catalog/groups/schema.ts';
import { ParsePricingAnswer } from '../../api/catalog/parsing/schema.ts';
import { PlanAnswer, PlanListAnswer } from '../../api/catalog/plans/schema.ts';
import { PriceUnitAnswer, PriceUnitListAnswer } from '../../api/catalog/price-units/schema.ts';
import { BulkPriceAnswer, PriceAnswer, PriceCostAnswer, PriceListAnswer } from '../../api/catalog/prices/schema.ts';
import {
  TaxAssociationAnswer,
  TaxAssociationListAnswer,
  TaxRateAnswer,
  TaxRateListAnswer,
} from '../../api/catalog/taxes/schema.ts';
import {
  ToppedUpAnswer,
  WalletAnswer,
  WalletBalanceAnswer,
  WalletBalancesAnswer,
  WalletDebited,
  WalletEnded,
  WalletListAnswer,
  WalletModified,
  WalletsAnswer,
  WalletTransactionListAnswer,
} from '../../api/credits/wallets/schema.ts';
import {
  CompleteOAuthAnswer,
  ConnectionAnswer,
  ConnectionListAnswer,
  ConnectionTestAnswer,
  InitiateOAuthAnswer,
} from '../../api/delivery/connections/schema.ts';
import { ProviderEventAnswer, ProviderEventListAnswer } from '../../api/delivery/inbound/schema.ts';
import {
  IntegrationConfigAnswer,
  LinkAnswer,
  MappingAnswer,
  MappingListAnswer,
} from '../../api/delivery/integrations/schema.ts';
import {
  DashboardAnswer,
  DeliveryAnswer,
  DeliveryDetailAnswer,
  DeliveryListAnswer,
  EndpointAnswer,
  EndpointListAnswer,
  EndpointSecretAnswer,
  EventTypesAnswer,
  RetryAnswer,
  SystemEventAnswer,
  SystemEventListAnswer,
} from '../../api/delivery/webhooks/schema.ts';
import { AuthAnswer } from '../../api/foundation/auth/schema.ts';
import { CheckoutSessionAnswer } from '../../api/foundation/checkout-session.ts';
import { TenantAnswer } from '../../api/foundation/tenants/schema.ts';
import { CreateUserAnswer, UserAnswer, UserListAnswer } from '../../api/foundation/users/schema.ts';
import { WorkflowListAnswer, WorkflowResult, WorkflowSummaryAnswer } from '../../api/foundation/workflows/schema.ts';
import type { ErrorAnswer as ErrorShape } from '../../api/http/errors.ts';
import { Pagination } from '../../api/http/list.ts';
import { MessageAnswer } from '../../api/http/route.ts';
import { CreditNoteAnswer, CreditNoteDone, CreditNoteListAnswer } from '../../api/invoicing/credit-notes/schema.ts';
import { DocumentAddressAnswer } from '../../api/invoicing/documents/schema.ts';
import {
  ComputeAnswer,
  InvoiceAnswer,
  InvoiceListAnswer,
  InvoiceSummaryAnswer,
  WebhookResentAnswer,
} from '../../api/invoicing/invoices/schema.ts';
import { AddonAssociationAnswer, AttachAddonAnswer } from '../../api/lifecycle/subscriptions/addon-schema.ts';
import { ModifySubscriptionAnswer } from '../../api/lifecycle/subscriptions/modify-schema.ts';
import {
  ChangePlanAnswer,
  ChangePlanPreviewAnswer,
  ChangePlanV2Answer,
} from '../../api/lifecycle/subscriptions/plan-change-schema.ts';
import { CancelScheduleAnswer, SchedulesAnswer } from '../../api/lifecycle/subscriptions/schedule-routes.ts';
import { ListedCorrectionsAnswer } from '../../api/metering/events/correction-list.ts';
import { CorrectionPreviewAnswer } from '../../api/metering/events/correction-previews.ts';
import { CorrectionAnswer } from '../../api/metering/events/corrections.ts';
import { DeadLetterAnswer, ReplayAnswer } from '../../api/metering/events/dead-letters.ts';
import { MonitoringAnswer } from '../../api/metering/events/monitoring.ts';
import { GetEventsAnswer } from '../../api/metering/events/query.ts';
import {
  BulkIngestEventAnswer,
  BulkIngestRawEventAnswer,
  IngestEventAnswer,
  OtlpMetricsAnswer,
} from '../../api/metering/events/schema.ts';
import { SeenNamesAnswer, SeenPropertiesAnswer } from '../../api/metering/events/seen.ts';
import { ListUncountedEventsAnswer } from '../../api/metering/events/uncounted.ts';
import { MeterAnswer, MeterDetailAnswer, MeterListAnswer } from '../../api/metering/meters/schema.ts';
import { UsageAnswer } from '../../api/metering/usage/routes.ts';
import { AuditAnswer, AuditListAnswer } from '../../api/operations/audit-logs/schema.ts';
import { SessionAnswer, SessionListAnswer, SignInOptions } from '../../api/operations/auth/session-schema.ts';
import { CloneAnswer, EnvironmentAnswer, EnvironmentListAnswer } from '../../api/operations/environments/schema.ts';
import { RoleAnswer } from '../../api/operations/rbac/routes.ts';
import {
  CreateApiKeyAnswer,
  LinkedIntegrationsAnswer,
  SecretAnswer,
  SecretListAnswer,
} from '../../api/operations/secrets/schema.ts';
import { SettingAnswer, SettingListAnswer } from '../../api/operations/settings/schema.ts';
import {
  ImportMappingAnswer,
  ImportMappingListAnswer,
  PresetListAnswer,
} from '../../api/operations/tasks/mapping-schema.ts';
import { PreviewAnswer, TaskAnswer, TaskListAnswer } from '../../api/operations/tasks/schema.ts';
import {
  CardSetupAnswer,
  PaymentAnswer,
  PaymentListAnswer,
  PaymentMethodAnswer,
  PaymentMethodListAnswer,
} from '../../api/payments/schema.ts';
import {
  CustomerEntitlementsAnswer,
  CustomerUsageAnswer,
  SubscriptionEntitlementsAnswer,
} from '../../api/rating/entitlements/entitled.ts';
import { AttentionAnswer } from '../../api/reporting/attention/routes.ts';
import { CostAnalyticsAnswer } from '../../api/reporting/costs/analytics-schema.ts';
import {
  CostsheetAnswer,
  CostsheetListAnswer,
  CreateCostsheetAnswer,
  DeleteCostsheetAnswer,
  GetCostsheetAnswer,
  UpdateCostsheetAnswer,
} from '../../api/reporting/costs/schema.ts';
import { ReceivablesAnswer } from '../../api/reporting/dashboard/receivables.ts';
import { DashboardRevenuesAnswer, RevenueDashboardAnswer } from '../../api/reporting/dashboard/schema.ts';
import { EventByIdAnswer } from '../../api/reporting/events/debugger-answer.ts';
import { ListLateEventsAnswer } from '../../api/reporting/events/late.ts';
import { EventThreadAnswer } from '../../api/reporting/events/thread.ts';
import { MeterUsageAnswer } from '../../api/reporting/meter-usage/routes.ts';
import {
  RunNowAnswer,
  ScheduledTaskAnswer,
  ScheduledTaskListAnswer,
} from '../../api/reporting/scheduled-tasks/schema.ts';
import { SearchAnswer } from '../../api/reporting/search/routes.ts';
import { CustomerSummariesAnswer, PlanSummariesAnswer } from '../../api/reporting/summaries/schema.ts';
import { AnalyticsAnswer } from '../../api/reporting/usage/analytics-answer.ts';
import { CheckAnswer, ReservationAnswer, ReservationListAnswer } from '../../api/reservations/schema.ts';
import { TestClockAnswer, TestClockListAnswer } from '../../api/schedule/test-clocks/schema.ts';
import {
  AddedLineItemAnswer,
  PreviewSubscriptionAnswer,
  SubscriptionAnswer,
  SubscriptionAnswerV2,
  SubscriptionLineItemAnswer,
} from '../../api/subscriptions/answer.ts';
import {
  CancelSubscriptionAnswer,
  CancelSubscriptionPreviewAnswer,
  SubscriptionLineItemListAnswer,
  SubscriptionListAnswer,
  SubscriptionUsageAnswer,
} from '../../api/subscriptions/schema.ts';
import { ScheduleAnswer } from '../../api/subscriptions/show-schedule.ts';
import { EventProof as EventProofShape, InvoiceProof as InvoiceProofShape } from '../../core/invoicing/proof/record.ts';

export const ANSWERS = {
  'POST /meters': MeterAnswer,
  'GET /meters': MeterListAnswer,
  'GET /meters/:id': MeterDetailAnswer,
  'PUT /meters/:id': MeterAnswer,
  'POST /meters/:id/disable': MessageAnswer,
  'DELETE /meters/:id': MessageAnswer,
  'POST /auth/signup': AuthAnswer,
  'POST /auth/login': AuthAnswer,
  'POST /auth/session': SessionAnswer,
  'GET /auth/session': SessionAnswer,
  'DELETE /auth/session': z.null(),
  'GET /auth/sessions': SessionListAnswer,
  'DELETE /auth/sessions/:id': z.null(),
  'GET /auth/options': SignInOptions,
  'POST /environments': EnvironmentAnswer,
  'GET /environments': EnvironmentListAnswer,
  'GET /environments/:id': EnvironmentAnswer,
  'PUT /environments/:id': EnvironmentAnswer,
  'POST /environments/:id/clone': CloneAnswer,
  'GET /tenants/:id': TenantAnswer,
  'PUT /tenants/update': TenantAnswer,
  'GET /users/me': UserAnswer,
  'PUT /users/me': UserAnswer,
  'POST /users': CreateUserAnswer,
  'POST /users/search': UserListAnswer,
  'PUT /users/:id': UserAnswer,
  'PUT /users/:id/roles': UserAnswer,
  'DELETE /users/:id': z.null(),
  'GET /secrets/api/keys': SecretListAnswer,
  'POST /secrets/api/keys': CreateApiKeyAnswer,
  'DELETE /secrets/api/keys/:id': z.null(),
  'GET /rbac/roles': z.object({ roles: z.array(RoleAnswer) }),
  'GET /rbac/roles/:id': z.object({ role: RoleAnswer }),
  'GET /settings': SettingListAnswer,
  'GET /settings/:key': SettingAnswer,
  'PUT /settings/:key': SettingAnswer,
  'DELETE /settings/:key': MessageAnswer,
  'POST /customers': CustomerAnswer,
  'GET /customers': CustomerListAnswer,
  'POST /customers/search': CustomerListAnswer,
  'PUT /customers': CustomerAnswer,
  'PUT /customers/:id': CustomerAnswer,
  'GET /customers/:id': CustomerAnswer,
  'GET /customers/external/:external_id': CustomerAnswer,
  'GET /customers/lookup/:lookup_key': CustomerAnswer,
  'DELETE /customers/:id': z.null(),
  'GET /customers/:id/entitlements': CustomerEntitlementsAnswer,
  'GET /customers/external/:external_id/entitlements': CustomerEntitlementsAnswer,
  'GET /customers/usage': CustomerUsageAnswer,
  'GET /customers/:id/usage': CustomerUsageAnswer,
  'GET /customers/external/:external_id/subscriptions': SubscriptionListAnswer,
  'POST /features': FeatureAnswer,
  'GET /features': FeatureListAnswer,
  'POST /features/search': FeatureListAnswer,
  'GET /features/:id': FeatureAnswer,
  'PUT /features/:id': FeatureAnswer,
  'DELETE /features/:id': MessageAnswer,
  'POST /features/:id/clone': FeatureAnswer,
  'POST /plans': PlanAnswer,
  'GET /plans': PlanListAnswer,
  'POST /plans/search': PlanListAnswer,
  'GET /plans/:id': PlanAnswer,
  'PUT /plans/:id': PlanAnswer,
  'DELETE /plans/:id': MessageAnswer,
  'POST /plans/:id/clone': PlanAnswer,
  'POST /plans/:id/sync/subscriptions': WorkflowResult,
  'POST /plans/:id/sync/subscriptions/v2': WorkflowResult,
  'POST /prices': PriceAnswer,
  'POST /prices/bulk': BulkPriceAnswer,
  'POST /prices/cost': PriceCostAnswer,
  'GET /prices': PriceListAnswer,
  'POST /prices/search': PriceListAnswer,
  'GET /prices/lookup/:lookup_key': PriceAnswer,
  'GET /prices/:id': PriceAnswer,
  'PUT /prices/:id': PriceAnswer,
  'DELETE /prices/:id': MessageAnswer,
  'POST /prices/units': PriceUnitAnswer,
  'GET /prices/units': PriceUnitListAnswer,
  'POST /prices/units/search': PriceUnitListAnswer,
  'GET /prices/units/:id': PriceUnitAnswer,
  'GET /prices/units/code/:code': PriceUnitAnswer,
  'PUT /prices/units/:id': PriceUnitAnswer,
  'DELETE /prices/units/:id': MessageAnswer,
  'POST /groups': GroupAnswer,
  'POST /groups/search': GroupListAnswer,
  'GET /groups/:id': GroupAnswer,
  'DELETE /groups/:id': z.null(),
  'POST /coupons': CouponAnswer,
  'GET /coupons': CouponListAnswer,
  'POST /coupons/search': CouponListAnswer,
  'GET /coupons/:id': CouponAnswer,
  'GET /coupons/code/:code': CouponAnswer,
  'PUT /coupons/:id': CouponAnswer,
  'DELETE /coupons/:id': MessageAnswer,
  'GET /coupons/associations': CouponAssociationListAnswer,
  'GET /coupons/associations/:id': CouponAssociationAnswer,
  'POST /taxes/rates': TaxRateAnswer,
  'GET /taxes/rates': TaxRateListAnswer,
  'GET /taxes/rates/:id': TaxRateAnswer,
  'PUT /taxes/rates/:id': TaxRateAnswer,
  'DELETE /taxes/rates/:id': z.null(),
  'POST /taxes/associations': TaxAssociationAnswer,
  'GET /taxes/associations': TaxAssociationListAnswer,
  'GET /taxes/associations/:id': TaxAssociationAnswer,
  'PUT /taxes/associations/:id': TaxAssociationAnswer,
  'DELETE /taxes/associations/:id': TaxAssociationAnswer,
  'POST /costs/analytics-v2': CostAnalyticsAnswer,
  'POST /costs/analytics': CostAnalyticsAnswer,
  'POST /costs': CreateCostsheetAnswer,
  'POST /costs/search': CostsheetListAnswer,
  'GET /costs/active': CostsheetAnswer,
  'GET /costs/:id': GetCostsheetAnswer,
  'PUT /costs/:id': UpdateCostsheetAnswer,
  'DELETE /costs/:id': DeleteCostsheetAnswer,
  'POST /dashboard/revenue-dashboard': RevenueDashboardAnswer,
  'POST /dashboard/revenues': DashboardRevenuesAnswer,
  'POST /creditgrants': CreditGrantAnswer,
  'GET /creditgrants': CreditGrantListAnswer,
  'GET /creditgrants/:id': CreditGrantAnswer,
  'PUT /creditgrants/:id': CreditGrantAnswer,
  'DELETE /creditgrants/:id': MessageAnswer,
  'GET /plans/:id/creditgrants': CreditGrantListAnswer,
  'GET /addons/:id/creditgrants': CreditGrantListAnswer,
  'GET /subscriptions/:id/grants/upcoming': CreditGrantApplicationListAnswer,
  'GET /customers/:id/grants/upcoming': CreditGrantApplicationListAnswer,
  'POST /alerts/search': AlertLogListAnswer,
  'POST /alerts/setting': AlertSettingAnswer,
  'POST /alerts/setting/search': AlertSettingListAnswer,
  'GET /alerts/setting/:id': AlertSettingAnswer,
  'PUT /alerts/setting/:id': AlertSettingAnswer,
  'DELETE /alerts/setting/:id': z.null(),
  'POST /addons': AddonAnswer,
  'GET /addons': AddonListAnswer,
  'POST /addons/search': AddonListAnswer,
  'GET /addons/lookup/:lookup_key': AddonAnswer,
  'GET /addons/:id': AddonAnswer,
  'PUT /addons/:id': AddonAnswer,
  'DELETE /addons/:id': MessageAnswer,
  'POST /entitlements': EntitlementAnswer,
  'POST /entitlements/bulk': BulkEntitlementAnswer,
  'GET /entitlements': EntitlementListAnswer,
  'POST /entitlements/search': EntitlementListAnswer,
  'GET /entitlements/:id': EntitlementAnswer,
  'PUT /entitlements/:id': EntitlementAnswer,
  'DELETE /entitlements/:id': MessageAnswer,
  'GET /plans/:id/entitlements': PlanEntitlementsAnswer,
  'GET /addons/:id/entitlements': EntitlementListAnswer,
  'GET /subscriptions/:id/entitlements': SubscriptionEntitlementsAnswer,
  'POST /entitlements/check': CheckAnswer,
  'GET /reservations': ReservationListAnswer,
  'POST /reservations/search': ReservationListAnswer,
  'GET /reservations/:id': ReservationAnswer,
  'POST /reservations/:id/commit': ReservationAnswer,
  'POST /reservations/:id/release': ReservationAnswer,
  'POST /subscriptions/:id/lineitems': AddedLineItemAnswer,
  'PUT /subscriptions/lineitems/:id': SubscriptionLineItemAnswer,
  'DELETE /subscriptions/lineitems/:id': SubscriptionLineItemAnswer,
  'POST /subscriptions/addon': AttachAddonAnswer,
  'DELETE /subscriptions/addon': MessageAnswer,
  'GET /subscriptions/:id/addons/associations': z.array(AddonAssociationAnswer),
  'POST /subscriptions': SubscriptionAnswer,
  'GET /subscriptions': SubscriptionListAnswer,
  'POST /subscriptions/search': SubscriptionListAnswer,
  'POST /subscriptions/usage': SubscriptionUsageAnswer,
  'POST /subscriptions/lineitems/search': SubscriptionLineItemListAnswer,
  'GET /subscriptions/:id': SubscriptionAnswer,
  'GET /subscriptions/:id/v2': SubscriptionAnswerV2,
  'PUT /subscriptions/:id': SubscriptionAnswer,
  'POST /subscriptions/:id/activate': SubscriptionAnswer,
  'POST /subscriptions/:id/cancel': CancelSubscriptionAnswer,
  'POST /subscriptions/:id/cancel/preview': CancelSubscriptionPreviewAnswer,
  'POST /subscriptions/preview': PreviewSubscriptionAnswer,
  'POST /subscriptions/:id/modify/preview': ModifySubscriptionAnswer,
  'POST /subscriptions/:id/modify/execute': ModifySubscriptionAnswer,
  'GET /subscriptions/schedules': SchedulesAnswer,
  'GET /subscription-schedules': SchedulesAnswer,
  'GET /subscriptions/:id/schedules': SchedulesAnswer,
  'GET /subscriptions/schedules/:schedule_id': ScheduleAnswer,
  'GET /subscription-schedules/:id': ScheduleAnswer,
  'POST /subscriptions/schedules/:schedule_id/cancel': CancelScheduleAnswer,
  'POST /subscriptions/schedules/cancel': CancelScheduleAnswer,
  'POST /subscriptions/:id/change/preview': ChangePlanPreviewAnswer,
  'POST /subscriptions/:id/change/execute': ChangePlanAnswer,
  'POST /subscriptions/:id/change/v2/preview': ChangePlanV2Answer,
  'POST /subscriptions/:id/change/v2/execute': ChangePlanV2Answer,
  'POST /invoices': InvoiceAnswer,
  'GET /invoices': InvoiceListAnswer,
  'POST /invoices/search': InvoiceListAnswer,
  'POST /invoices/preview': InvoiceAnswer,
  'POST /invoices/one-off/preview': InvoiceAnswer,
  'POST /invoices/internal/preview': InvoiceAnswer,
  'GET /invoices/:id': InvoiceAnswer,
  'PUT /invoices/:id': InvoiceAnswer,
  'POST /invoices/:id/compute': ComputeAnswer,
  'POST /invoices/:id/finalize': MessageAnswer,
  'POST /invoices/:id/void': MessageAnswer,
  'PUT /invoices/:id/payment': InvoiceAnswer,
  'POST /invoices/:id/payment/attempt': MessageAnswer,
  'GET /customers/:id/invoices/summary': InvoiceSummaryAnswer,
  'POST /checkout/sessions': CheckoutSessionAnswer,
  'GET /checkout/sessions/:id': CheckoutSessionAnswer,
  'DELETE /checkout/sessions/:id': z.null(),
  'POST /payments': PaymentAnswer,
  'GET /payments': PaymentListAnswer,
  'POST /payments/search': PaymentListAnswer,
  'POST /payments/customers/:id/setup/intent': CardSetupAnswer,
  'GET /payments/:id': PaymentAnswer,
  'PUT /payments/:id': PaymentAnswer,
  'DELETE /payments/:id': MessageAnswer,
  'POST /payments/:id/process': PaymentAnswer,
  'POST /payments/:id/refund': PaymentAnswer,
  'POST /payments/:id/sandbox': PaymentAnswer,
  'GET /payments/customers/:id/methods': PaymentMethodListAnswer,
  'POST /payments/customers/:id/methods': PaymentMethodAnswer,
  'DELETE /payments/customers/:id/methods/:method_id': MessageAnswer,
  'POST /webhooks/sandbox/:tenant_id/:environment_id': MessageAnswer,
  'POST /invoices/:id/recalculate': InvoiceAnswer,
  'POST /invoices/:id/recalculate-v2': InvoiceAnswer,
  'POST /invoices/temporal/:invoice_id/finalize': WorkflowResult,
  'POST /invoices/:id/comms/trigger': MessageAnswer,
  'POST /invoices/:id/webhook/trigger': WebhookResentAnswer,
  'GET /dashboard/receivables': ReceivablesAnswer,
  'GET /dashboard/attention': AttentionAnswer,
  'POST /customers/summaries': CustomerSummariesAnswer,
  'POST /plans/summaries': PlanSummariesAnswer,
  'GET /search': SearchAnswer,
  'GET /events/names': SeenNamesAnswer,
  'GET /events/properties': SeenPropertiesAnswer,
  'GET /invoices/:id/pdf': DocumentAddressAnswer,
  'GET /creditnotes/:id/pdf': DocumentAddressAnswer,
  'POST /invoices/preview/pdf': z.string(),
  'GET /documents/:token': z.string(),
  'POST /creditnotes': CreditNoteAnswer,
  'POST /creditnotes/preview': CreditNoteAnswer,
  'GET /creditnotes': CreditNoteListAnswer,
  'GET /creditnotes/:id': CreditNoteAnswer,
  'POST /creditnotes/:id/finalize': CreditNoteDone,
  'POST /creditnotes/:id/void': CreditNoteDone,
  'GET /invoices/:id/proof': InvoiceProofShape,
  'GET /invoices/:id/proof/events': z.string(),
  'GET /invoices/:id/proof/events/:event_id': EventProofShape,
  'POST /events': IngestEventAnswer,
  'POST /events/bulk': BulkIngestEventAnswer,
  'POST /events/raw/bulk': BulkIngestRawEventAnswer,
  'POST /otlp/v1/metrics': OtlpMetricsAnswer,
  'GET /events': GetEventsAnswer,
  'POST /events/query': GetEventsAnswer,
  'POST /events/:id/void': CorrectionAnswer,
  'POST /events/:id/void/preview': CorrectionPreviewAnswer,
  'POST /events/:id/replace/preview': CorrectionPreviewAnswer,
  'POST /events/:id/replace': CorrectionAnswer,
  'GET /events/:id/thread': EventThreadAnswer,
  'GET /events/corrections': ListedCorrectionsAnswer,
  'GET /events/:id/corrections': z.object({ items: z.array(CorrectionAnswer) }),
  'GET /events/dead-letters': z.object({ items: z.array(DeadLetterAnswer), pagination: Pagination }),
  'POST /events/dead-letters/replay': ReplayAnswer,
  'GET /events/stream': z.string(),
  'GET /events/late': ListLateEventsAnswer,
  'GET /events/uncounted': ListUncountedEventsAnswer,
  'GET /events/monitoring': MonitoringAnswer,
  'POST /events/usage': UsageAnswer,
  'POST /events/usage/meter': UsageAnswer,
  'POST /meter-usage/query': MeterUsageAnswer,
  'POST /meter-usage/analytics': z.object({ items: z.array(MeterUsageAnswer) }),
  'POST /meter-usage/detailed-analytics': AnalyticsAnswer,
  'POST /events/analytics': AnalyticsAnswer,
  'GET /events/:id': EventByIdAnswer,
  'GET /events/lookup': EventByIdAnswer,
  'GET /events/usage/export': z.string(),
  'POST /workflows/search': WorkflowListAnswer,
  'GET /workflows/:workflow_id/:run_id/summary': WorkflowSummaryAnswer,
  'GET /tasks/result': WorkflowResult,
  'GET /tasks': TaskListAnswer,
  'GET /tasks/:id': TaskAnswer,
  'PUT /tasks/:id/status': MessageAnswer,
  'POST /tasks': TaskAnswer,
  'POST /tasks/upload': TaskAnswer,
  'POST /tasks/upload/preview': PreviewAnswer,
  'GET /tasks/:id/report': z.string(),
  'GET /tasks/:id/refused': z.string(),
  'POST /tasks/mappings': ImportMappingAnswer,
  'GET /tasks/mappings': ImportMappingListAnswer,
  'GET /tasks/mappings/presets': PresetListAnswer,
  'GET /tasks/mappings/:id': ImportMappingAnswer,
  'PUT /tasks/mappings/:id': ImportMappingAnswer,
  'DELETE /tasks/mappings/:id': MessageAnswer,
  'POST /tasks/scheduled': ScheduledTaskAnswer,
  'GET /tasks/scheduled': ScheduledTaskListAnswer,
  'GET /tasks/scheduled/:id': ScheduledTaskAnswer,
  'PUT /tasks/scheduled/:id': ScheduledTaskAnswer,
  'DELETE /tasks/scheduled/:id': z.null(),
  'POST /tasks/scheduled/:id/run': RunNowAnswer,
  'POST /tasks/scheduled/schedule-update-billing-period': MessageAnswer,
  'GET /tasks/:id/download': z.object({ download_url: z.string() }),
  'GET /exports/files/:token': z.string(),
  'GET /exports/:entity_type': z.string(),
  'POST /connections': ConnectionAnswer,
  'GET /connections': ConnectionListAnswer,
  'POST /connections/search': ConnectionListAnswer,
  'GET /connections/:id': ConnectionAnswer,
  'PUT /connections/:id': ConnectionAnswer,
  'DELETE /connections/:id': z.null(),
  'POST /connections/:id/test': ConnectionTestAnswer,
  'POST /oauth/init': InitiateOAuthAnswer,
  'POST /oauth/complete': CompleteOAuthAnswer,
  'POST /integrations/link': LinkAnswer,
  'DELETE /integrations/link': MessageAnswer,
  'GET /integrations/mappings': MappingListAnswer,
  'GET /integrations/config': IntegrationConfigAnswer,
  'POST /integrations/sync': MessageAnswer,
  'POST /webhooks/stripe/:tenant_id/:environment_id': MessageAnswer,
  'POST /webhooks/razorpay/:tenant_id/:environment_id': MessageAnswer,
  'POST /webhooks/quickbooks/:tenant_id/:environment_id': MessageAnswer,
  'POST /webhooks/zoho_books/:tenant_id/:environment_id': MessageAnswer,
  'POST /webhooks/paddle/:tenant_id/:environment_id': MessageAnswer,
  'POST /webhooks/xero/:tenant_id/:environment_id': z.null(),
  'POST /webhooks/moyasar/:tenant_id/:environment_id': MessageAnswer,
  'POST /webhooks/nomod/:tenant_id/:environment_id': MessageAnswer,
  'POST /webhooks/hubspot/:tenant_id/:environment_id': MessageAnswer,
  'POST /webhooks/chargebee/:tenant_id/:environment_id': MessageAnswer,
  'POST /webhooks/whop/:tenant_id/:environment_id': MessageAnswer,
  'GET /webhooks/inbound': ProviderEventListAnswer,
  'POST /webhooks/inbound/:id/retry': ProviderEventAnswer,
  'POST /entity-integration-mappings': MappingAnswer,
  'DELETE /entity-integration-mappings/:id': z.null(),
  'POST /secrets/integrations/create/:provider': SecretAnswer,
  'GET /secrets/integrations/by-provider/:provider': SecretAnswer,
  'GET /secrets/integrations/linked': LinkedIntegrationsAnswer,
  'DELETE /secrets/integrations/:id': z.null(),
  'POST /ai/pricing/parse': ParsePricingAnswer,
  'POST /wallets': WalletAnswer,
  'GET /wallets': WalletListAnswer,
  'POST /wallets/search': WalletListAnswer,
  'GET /wallets/:id': WalletAnswer,
  'PUT /wallets/:id': WalletAnswer,
  'POST /wallets/:id/top-up': ToppedUpAnswer,
  'POST /wallets/:id/debit': WalletDebited,
  'POST /wallets/:id/terminate': WalletEnded,
  'POST /wallets/:id/modify': WalletModified,
  'GET /wallets/:id/balance/real-time': WalletBalanceAnswer,
  'GET /wallets/:id/balance/real-time-cached': WalletBalanceAnswer,
  'GET /wallets/:id/transactions': WalletTransactionListAnswer,
  'POST /wallets/transactions/search': WalletTransactionListAnswer,
  'GET /customers/:id/wallets': WalletsAnswer,
  'GET /customers/wallets': WalletBalancesAnswer,
  'POST /webhooks/endpoints': EndpointSecretAnswer,
  'GET /webhooks/endpoints': EndpointListAnswer,
  'GET /webhooks/endpoints/:id': EndpointAnswer,
  'PUT /webhooks/endpoints/:id': EndpointAnswer,
  'DELETE /webhooks/endpoints/:id': z.null(),
  'POST /webhooks/endpoints/:id/secret/rotate': EndpointSecretAnswer,
  'POST /webhooks/endpoints/:id/test': DeliveryAnswer,
  'GET /webhooks/event-types': EventTypesAnswer,
  'GET /webhooks/events': SystemEventListAnswer,
  'POST /webhooks/events/search': SystemEventListAnswer,
  'GET /webhooks/events/:id': SystemEventAnswer,
  'GET /webhooks/deliveries': DeliveryListAnswer,
  'POST /webhooks/deliveries/search': DeliveryListAnswer,
  'GET /webhooks/deliveries/:id': DeliveryDetailAnswer,
  'POST /webhooks/:id/retry': RetryAnswer,
  'POST /webhooks/retry': RetryAnswer,
  'GET /webhooks/dashboard': DashboardAnswer,
  'GET /audit-logs': AuditListAnswer,
  'GET /audit-logs/:id': AuditAnswer,
  'POST /test-clocks': TestClockAnswer,
  'GET /test-clocks': TestClockListAnswer,
  'POST /test-clocks/search': TestClockListAnswer,
  'GET /test-clocks/:id': TestClockAnswer,
  'DELETE /test-clocks/:id': MessageAnswer,
  'POST /test-clocks/:id/advance': TestClockAnswer,
  'POST /test-clocks/:id/stop': TestClockAnswer,
} as const;

type Plain = string | number | boolean | null;
/** Each declared key is present, null when it is unset. */
export type OnWire<T> = [T] extends [Plain] ? T : OnWireOf<T>;
type OnWireOf<T> = T extends Plain
  ? T
  : T extends readonly (infer Item)[]
    ? OnWire<Item>[]
    : T extends object
      ? { [Key in keyof T]-?: OnWire<Exclude<T[Key], undefined>> }
      : T;

export type ErrorAnswer = z.infer<typeof ErrorShape>;
/** An answer or an error. The status decides which; tests check it before they read the answer. */
type OrError<T> = T extends null ? ErrorAnswer | null : T & Omit<Partial<ErrorAnswer>, keyof T>;
/** Answer of an operation whose path is known at run time only. */
export type SomeAnswer = Partial<ErrorAnswer> & { [field: string]: unknown };

/** `/plans/:id/clone` and `/plans/${string}/clone` are both `/plans/:/clone`. */
type Pattern<Path extends string> = Path extends `${infer Head}/${infer Rest}`
  ? `${Segment<Head>}/${Pattern<Rest>}`
  : Segment<Path>;
type Segment<Text extends string> = Text extends `:${string}` ? ':' : IsAnyText<Text> extends true ? ':' : Text;
/** Patterns of a path whose literal parts may be parameters: `/settings/:` for `/settings/tax`. */
type LoosePattern<Text extends string> = Text extends `${infer Noun}/${infer Rest}/${infer More}`
  ? `${Noun}/${Rest}/${LooseWords<More>}`
  : Text;
type LooseWords<Path extends string> = Path extends `${infer Word}/${infer Rest}`
  ? `${Word | ':'}/${LooseWords<Rest>}`
  : Path | ':';
type IsAnyText<Text extends string> = {} extends Record<Text, 1> ? true : false;
type WithoutQuery<Path extends string> = Path extends `${infer Before}?${string}` ? Before : Path;

type ByPattern = {
  [Key in keyof typeof ANSWERS as Key extends `${infer Method} ${infer Path}`
    ? `${Method} ${Pattern<Path>}`
    : never]: OnWire<z.infer<(typeof ANSWERS)[Key]>>;
};
type Known = keyof ByPattern;
type Find<Exact extends string> = Exact extends Known
  ? ByPattern[Exact]
  : FindLoose<Extract<LoosePattern<Exact>, Known>, Exact>;
type FindLoose<Key extends Known, Exact extends string> = [Key] extends [never]
  ? FindSimilar<Extract<Known, Wild<Exact>>>
  : ByPattern[Key];
/** Finds operations with equal answers whose paths differ in a variable last segment: `/subscriptions/:/modify/:`. */
type FindSimilar<Key extends Known> = [Key] extends [never] ? SomeAnswer : ByPattern[Key];
type Wild<Text extends string> = Text extends `${infer Head}/${infer Middle}/:/${infer Verb}/:`
  ? `${Head}/${Middle}/:/${Verb}/${string}`
  : never;
type FindPath<Method extends string, Path extends string> = string extends Path
  ? SomeAnswer
  : Path extends string
    ? Find<`${Method} ${Pattern<Path>}`>
    : never;
/** A record that is answered alone has its lines. A record in a list may lack them. */
type Whole<T> = T extends { line_items: unknown } ? T & { line_items: NonNullable<T['line_items']> } : T;

/** Answer of the operation when it succeeds. */
export type AnswerTo<Method extends string, Path extends string> = Whole<FindPath<Method, WithoutQuery<Path>>>;
/** Body of a response, which may be an error. */
export type BodyFrom<Method extends string, Path extends string> = OrError<AnswerTo<Method, Path>>;

export type Meter = AnswerTo<'PUT', '/meters/:'>;
export type MeterDetail = AnswerTo<'GET', '/meters/:'>;
export type Customer = AnswerTo<'GET', '/customers/:'>;
export type Feature = AnswerTo<'GET', '/features/:'>;
export type Plan = AnswerTo<'GET', '/plans/:'>;
export type Price = AnswerTo<'GET', '/prices/:'>;
export type PriceUnit = AnswerTo<'GET', '/prices/units/:'>;
export type Group = AnswerTo<'GET', '/groups/:'>;
export type Coupon = AnswerTo<'GET', '/coupons/:'>;
export type CouponAssociation = AnswerTo<'GET', '/coupons/associations/:'>;
export type TaxRate = AnswerTo<'GET', '/taxes/rates/:'>;
export type TaxAssociation = AnswerTo<'GET', '/taxes/associations/:'>;
export type Addon = AnswerTo<'GET', '/addons/:'>;
export type AddonAssociation = AnswerTo<'GET', '/subscriptions/:/addons/associations'>[number];
export type Entitlement = AnswerTo<'GET', '/entitlements/:'>;
export type CreditGrant = AnswerTo<'GET', '/creditgrants/:'>;
export type CreditGrantApplication = AnswerTo<'GET', '/subscriptions/:/grants/upcoming'>['items'][number];
export type Subscription = AnswerTo<'GET', '/subscriptions/:'>;
export type SubscriptionLine = AnswerTo<'PUT', '/subscriptions/lineitems/:'>;
export type SubscriptionUsage = AnswerTo<'POST', '/subscriptions/usage'>;
export type Modification = AnswerTo<'POST', '/subscriptions/:/modify/execute'>;
export type PlanChange = AnswerTo<'POST', '/subscriptions/:/change/v2/execute'>;
export type Schedule = AnswerTo<'GET', '/subscription-schedules/:'>;
export type Invoice = AnswerTo<'GET', '/invoices/:'>;
export type CreditNote = AnswerTo<'GET', '/creditnotes/:'>;
export type CheckoutSession = AnswerTo<'GET', '/checkout/sessions/:'>;
export type Payment = AnswerTo<'GET', '/payments/:'>;
export type PaymentMethod = AnswerTo<'POST', '/payments/customers/:/methods'>;
export type Wallet = AnswerTo<'GET', '/wallets/:'>;
export type WalletBalance = AnswerTo<'GET', '/wallets/:/balance/real-time'>;
export type WalletTransaction = AnswerTo<'GET', '/wallets/:/transactions'>['items'][number];
export type AlertSetting = AnswerTo<'GET', '/alerts/setting/:'>;
export type AlertLog = AnswerTo<'POST', '/alerts/search'>['items'][number];
export type Reservation = AnswerTo<'GET', '/reservations/:'>;
export type Check = AnswerTo<'POST', '/entitlements/check'>;
export type CustomerEntitlements = AnswerTo<'GET', '/customers/:/entitlements'>;
export type CustomerUsage = AnswerTo<'GET', '/customers/:/usage'>;
export type Costsheet = AnswerTo<'GET', '/costs/active'>;
export type CostAnalytics = AnswerTo<'POST', '/costs/analytics'>;
export type RevenueDashboard = AnswerTo<'POST', '/dashboard/revenue-dashboard'>;
export type Dashboard = AnswerTo<'POST', '/dashboard/revenues'>;
export type Analytics = AnswerTo<'POST', '/events/analytics'>;
export type Usage = AnswerTo<'POST', '/events/usage'>;
export type MeterUsage = AnswerTo<'POST', '/meter-usage/query'>;
export type EventAnswer = AnswerTo<'GET', '/events'>['events'][number];
export type Correction = AnswerTo<'POST', '/events/:/void'>;
export type DeadLetter = AnswerTo<'GET', '/events/dead-letters'>['items'][number];
export type Task = AnswerTo<'GET', '/tasks/:'>;
export type ScheduledTask = AnswerTo<'GET', '/tasks/scheduled/:'>;
export type Workflow = AnswerTo<'POST', '/workflows/search'>['items'][number];
export type WorkflowSummary = AnswerTo<'GET', '/workflows/:/:/summary'>;
export type Connection = AnswerTo<'GET', '/connections/:'>;
export type Endpoint = AnswerTo<'GET', '/webhooks/endpoints/:'>;
export type EndpointSecret = AnswerTo<'POST', '/webhooks/endpoints'>;
export type Delivery = AnswerTo<'GET', '/webhooks/deliveries/:'>;
export type SystemEvent = AnswerTo<'GET', '/webhooks/events/:'>;
export type AuditEntry = AnswerTo<'GET', '/audit-logs/:'>;
export type TestClock = AnswerTo<'GET', '/test-clocks/:'>;
export type InvoiceProof = AnswerTo<'GET', '/invoices/:/proof'>;
export type EventProof = AnswerTo<'GET', '/invoices/:/proof/events/:'>;
export type Setting = AnswerTo<'GET', '/settings/:'>;
export type User = AnswerTo<'GET', '/users/me'>;
export type Tenant = AnswerTo<'GET', '/tenants/:'>;
export type Environment = AnswerTo<'GET', '/environments/:'>;
export type ApiKey = AnswerTo<'GET', '/secrets/api/keys'>['items'][number];
export type ParsedPricing = AnswerTo<'POST', '/ai/pricing/parse'>;
export type AnalyticsItem = Analytics['items'][number];
export type AnalyticsPoint = NonNullable<AnalyticsItem['points']>[number];
export type CostItem = CostAnalytics['cost_analytics'][number];
export type InvoiceLine = Invoice['line_items'][number];
/** An invoice as lists have it: without lines unless the request expands them. */
export type ListedInvoice = AnswerTo<'POST', '/invoices/search'>['items'][number];
export type ListedSubscription = AnswerTo<'POST', '/subscriptions/search'>['items'][number];
