/** Sums in the rows of lists of customers and plans, for a page of ids at a time. */
import { summarizeCustomers, summarizePlans } from '../../../actions/reporting/summaries/summaries.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { type Route, route } from '../../http/route.ts';
import {
  CustomerSummariesAnswer,
  CustomerSummariesRequest,
  PlanSummariesAnswer,
  PlanSummariesRequest,
} from './schema.ts';

const shared = { method: 'post', success: 200 } as const;

export const summaryRoutes: Route[] = [
  route({
    ...shared,
    path: '/customers/summaries',
    operation_id: 'summarizeCustomers',
    summary: 'Summarize customers',
    description:
      'Returns plans, unpaid amounts and wallet balances of up to 100 customers. Also needs the permissions to read ' +
      'subscriptions, invoices and wallets. Refused with 404 if a customer does not exist.',
    tag: 'Customers',
    access: 'customer:read',
    body: CustomerSummariesRequest,
    answer: CustomerSummariesAnswer,
    handle: async ({ body }, { services, scope, now, principal }) => {
      for (const entity of ['subscription', 'invoice', 'wallet'] as const)
        requireRead(principal, entity, 'a summary of customers');
      return { items: await summarizeCustomers(services.postgres, scope, { ...body, now }) };
    },
  }),
  route({
    ...shared,
    path: '/plans/summaries',
    operation_id: 'summarizePlans',
    summary: 'Summarize plans',
    description:
      'Returns the number of subscriptions and the monthly recurring revenue of up to 100 plans. Also needs the ' +
      'permission to read subscriptions. Refused with 404 if a plan does not exist.',
    tag: 'Plans',
    access: 'plan:read',
    body: PlanSummariesRequest,
    answer: PlanSummariesAnswer,
    handle: async ({ body }, { services, scope, now, principal }) => {
      requireRead(principal, 'subscription', 'a summary of plans');
      return { items: await summarizePlans(services.postgres, scope, { ...body, now }) };
    },
  }),
];
