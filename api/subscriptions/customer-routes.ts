/** Subscriptions of a customer, by its external id. */
import { z } from 'zod';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { type Route, route } from '../http/route.ts';
import { findSubscriptions } from './find.ts';
import { SubscriptionFilter, SubscriptionListAnswer } from './schema.ts';

const Query = SubscriptionFilter.pick({
  limit: true,
  offset: true,
  cursor: true,
  status: true,
  order: true,
  expand: true,
  subscription_status: true,
});
const NO_CONDITIONS = SubscriptionFilter.parse({});

export const customerSubscriptionRoutes: Route[] = [
  route({
    method: 'get',
    path: '/customers/external/:external_id/subscriptions',
    operation_id: 'listCustomerSubscriptions',
    summary: 'List subscriptions by external customer id',
    description:
      'Returns the subscriptions of the published customer with this external id. Further conditions work as in `GET /subscriptions` with `external_customer_id`.',
    tag: 'Customers',
    access: 'subscription:read',
    params: z.object({
      external_id: z.string().min(1).meta({ description: 'External id of the customer.' }),
    }),
    query: Query,
    success: 200,
    answer: SubscriptionListAnswer,
    handle: async ({ params, query }, context) => {
      const { scope, services } = context;
      const customer = await CustomerModel.fetchExternal(scope, params.external_id, services.postgres);
      return findSubscriptions({ ...NO_CONDITIONS, ...query, customer_id: customer.id }, context);
    },
  }),
];
