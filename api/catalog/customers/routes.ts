/** Customers: create, find, change, archive. */
import { z } from 'zod';
import { archiveCustomer } from '../../../actions/catalog/customers/archive-customer.ts';
import { changeCustomer } from '../../../actions/catalog/customers/change-customer.ts';
import { createCustomer } from '../../../actions/catalog/customers/create-customer.ts';
import { CreateCustomer, toParentReference, toRecordFields } from '../../../core/catalog/customer/request.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { checkExpand, fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import { showCustomer, showCustomers, showExpandedCustomer, withIntegrations } from './expand.ts';
import {
  CustomerAnswer,
  CustomerChoice,
  CustomerExpand,
  CustomerFilter,
  CustomerListAnswer,
  customerGrammar,
  UpdateCustomer,
} from './schema.ts';

const tag = 'Customers';

const customers = standardRoutes({
  noun: 'customer',
  tag,
  answer: CustomerAnswer,
  model: CustomerModel,
  show: showCustomer,
  list: { filter: CustomerFilter, answer: CustomerListAnswer, find: findCustomers },
});

export const customerRoutes: Route[] = [
  customers.create({
    summary: 'Create a customer',
    description:
      'Creates a customer. `external_id` identifies it in events and is unique among published customers. Earlier events with this id count for the customer too.',
    body: CreateCustomer,
    handle: ({ body }, context) =>
      createCustomer(context.services, context.scope, {
        fields: toRecordFields(body),
        tax_rate_overrides: body.tax_rate_overrides ?? null,
        parent: toParentReference(body),
        links: body.integration_entity_mapping,
        author: toAuthor(context),
      }),
  }),
  customers.list,
  customers.search,
  route({
    method: 'put',
    path: '/customers',
    operation_id: 'updateCustomer',
    summary: 'Update a customer by either id',
    description:
      'Changes the fields in the request. One of `id` and `external_customer_id` is required; ids of different customers are refused.',
    tag,
    access: 'customer:write',
    query: CustomerChoice,
    body: UpdateCustomer,
    success: 200,
    answer: CustomerAnswer,
    handle: async ({ query, body }, context) => changeChosen(query, body, context),
  }),
  route({
    method: 'put',
    path: '/customers/:id',
    operation_id: 'updateCustomerById',
    summary: 'Update a customer',
    description: 'Changes the fields in the request and keeps the others.',
    tag,
    access: 'customer:write',
    params: idParams,
    query: CustomerChoice.pick({ external_customer_id: true }),
    body: UpdateCustomer,
    success: 200,
    answer: CustomerAnswer,
    handle: async ({ params, query, body }, context) => changeChosen({ ...query, ...params }, body, context),
  }),
  route({
    method: 'get',
    path: '/customers/:id',
    operation_id: 'getCustomer',
    summary: 'Get a customer',
    description: 'Returns the customer with this id. An archived customer is returned too.',
    tag,
    access: 'customer:read',
    params: idParams,
    query: CustomerExpand,
    success: 200,
    answer: CustomerAnswer,
    handle: async ({ params, query }, context) => {
      checkExpand(query.expand ?? [], customerGrammar);
      const customer = await CustomerModel.fetch(context.scope, params.id, { database: context.services.postgres });
      return showExpandedCustomer(customer, query.expand, context);
    },
  }),
  ...(
    [
      ['/customers/external/:external_id', 'getCustomerByExternalId', 'external_id'],
      ['/customers/lookup/:lookup_key', 'getCustomerByLookupKey', 'lookup_key'],
    ] as const
  ).map(([path, operation_id, parameter]) =>
    route({
      method: 'get',
      path,
      operation_id,
      summary: 'Get a customer by external id',
      description: 'Returns the published customer with this external id. An archived customer is not found.',
      tag,
      access: 'customer:read',
      params: z.object({
        [parameter]: z.string().min(1).meta({ description: 'External id of the customer.' }),
      }),
      query: CustomerExpand,
      success: 200,
      answer: CustomerAnswer,
      handle: async ({ params, query }, context) => {
        checkExpand(query.expand ?? [], customerGrammar);
        const { scope, services } = context;
        const customer = await CustomerModel.fetchExternal(scope, params[parameter]!, services.postgres);
        return showExpandedCustomer(customer, query.expand, context);
      },
    }),
  ),
  route({
    method: 'delete',
    path: '/customers/:id',
    operation_id: 'deleteCustomer',
    summary: 'Archive a customer',
    description:
      'Archives the customer and releases its external id. Refused while it has or pays for a subscription that is not cancelled, or is the parent of other customers.',
    tag,
    access: 'customer:write',
    params: idParams,
    success: 204,
    handle: async ({ params }, context) => {
      await archiveCustomer(context.services, context.scope, { id: params.id, author: toAuthor(context) });
    },
  }),
];

async function findCustomers(input: CustomerFilter, context: Context) {
  const query = narrow(CustomerModel.in(context.scope, context.services.postgres), [
    ['id', input.customer_ids],
    ['external_id', input.external_ids],
    ['external_id', input.external_id],
    ['email', input.email],
    ['parent_customer_id', input.parent_customer_ids],
  ]);
  const page = await fetchPage(query, input, customerGrammar);
  const items = await showCustomers(page.items, context);
  return { ...page, items: input.expand?.includes('integrations') ? await withIntegrations(items, context) : items };
}

async function changeChosen(choice: CustomerChoice, fields: UpdateCustomer, context: Context) {
  const { id, external_customer_id } = choice;
  if (!id && !external_customer_id)
    throw invalid('id', 'is required as a query parameter, or external_customer_id instead of it');
  const links = fields.integration_entity_mapping;
  const change = {
    id,
    external_customer_id,
    changes: toRecordFields(fields),
    parent: toParentReference(fields),
    links,
  };
  const changed = await changeCustomer(context.services, context.scope, { ...change, author: toAuthor(context) });
  return showCustomer(changed, context);
}
