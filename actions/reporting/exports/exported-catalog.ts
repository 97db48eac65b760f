/** Exports all customers or subscriptions with their current values. */
import { CUSTOMER_COLUMNS } from '../../../core/platform/export/customers.ts';
import { type ExportedSubscription, SUBSCRIPTION_COLUMNS } from '../../../core/platform/export/subscriptions.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { listAllCustomers, listAllSubscriptions } from '../../../storage/models/reporting/exported-records.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { defineExportKind } from './export-kind.ts';
import { readPages } from './pages.ts';

export const customersExport = defineExportKind<CustomerModel>({
  is_whole: true,
  reads: ['customer'],
  columns: CUSTOMER_COLUMNS,
  keys: { customer_id: ({ id }) => id },
  rows: ({ postgres }, scope, { signal }) =>
    readPages<CustomerModel>(postgres, signal, (page) => listAllCustomers(scope, page)),
});

export const subscriptionsExport = defineExportKind<ExportedSubscription>({
  is_whole: true,
  reads: ['subscription', 'customer'],
  columns: SUBSCRIPTION_COLUMNS,
  keys: { customer_id: ({ customer_id }) => customer_id },
  async *rows({ postgres }, scope, { signal }) {
    const pages = readPages<SubscriptionModel>(postgres, signal, (page) => listAllSubscriptions(scope, page));
    for await (const page of pages) {
      const customerIds = page.map(({ customer_id }) => customer_id);
      const planIds = page.map(({ plan_id }) => plan_id);
      const [customers, plans] = await Promise.all([
        CustomerModel.byId(scope, customerIds, postgres),
        PlanModel.byId(scope, planIds, postgres),
      ]);
      yield page.map((subscription) => ({
        ...subscription,
        customer: customers.get(subscription.customer_id) ?? null,
        plan: plans.get(subscription.plan_id) ?? null,
      }));
    }
  },
});
