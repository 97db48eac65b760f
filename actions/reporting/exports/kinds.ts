/** Table of export kinds, one line for each. */
import type { ExportEntityType } from '../../../core/platform/export/record.ts';
import type { ExportKind } from './export-kind.ts';
import { usageAnalyticsExport } from './exported-analytics.ts';
import { customersExport, subscriptionsExport } from './exported-catalog.ts';
import { creditNotesExport } from './exported-credit-notes.ts';
import { creditTopupsExport, creditUsageExport } from './exported-credits.ts';
import { eventsExport } from './exported-events.ts';
import { focusExport } from './exported-focus.ts';
import { invoiceLinesExport } from './exported-invoice-lines.ts';
import { invoicesExport } from './exported-invoices.ts';
import { paymentsExport } from './exported-payments.ts';

export const EXPORT_KINDS = {
  events: eventsExport,
  invoice: invoicesExport,
  invoice_lines: invoiceLinesExport,
  payments: paymentsExport,
  credit_notes: creditNotesExport,
  customers: customersExport,
  subscriptions: subscriptionsExport,
  credit_topups: creditTopupsExport,
  credit_usage: creditUsageExport,
  usage_analytics: usageAnalyticsExport,
  focus: focusExport,
} as const satisfies Record<ExportEntityType, ExportKind>;
