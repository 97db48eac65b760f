/** Requests and answers of customers. */
import { z } from 'zod';
import { customerFields, customerShape } from '../../../core/catalog/customer/record.ts';
import { integrationParts, parentParts } from '../../../core/catalog/customer/request.ts';
import { integrationMappingShape } from '../../../core/platform/integration/mapping.ts';
import { expand, type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';

const { name } = customerFields.shape;

export const UpdateCustomer = customerFields
  .partial()
  .extend({
    name: name.refine((text) => text.trim() !== '', { error: 'must not be blank' }).optional(),
    integration_entity_mapping: integrationParts.integration_entity_mapping,
    ...parentParts,
  })
  .meta({ id: 'UpdateCustomerRequest', example: { name: 'Acme Corporation', metadata: { tier: 'platinum' } } });
export type UpdateCustomer = z.output<typeof UpdateCustomer>;

/** PUT /customers names the customer in the query, by either id or both. */
export const CustomerChoice = z.object({
  id: z.string().optional().meta({ description: 'Id of the customer.' }),
  external_customer_id: z.string().optional().meta({ description: 'External id of the customer.' }),
});
export type CustomerChoice = z.output<typeof CustomerChoice>;

export const CustomerExpand = z.object({ expand });

export const CustomerFilter = listShape({
  customer_ids: matchAny('customers'),
  external_ids: matchAny('external ids'),
  external_id: z.string().optional().meta({ description: 'External id of the customer.' }),
  email: z.string().optional().meta({ description: 'Exact email address.' }),
  parent_customer_ids: matchAny('parent customers'),
}).meta({ id: 'CustomerFilter', example: { external_ids: ['acme'], limit: 10 } });
export type CustomerFilter = z.output<typeof CustomerFilter>;

export const customerGrammar: ListGrammar = {
  columns: {
    id: 'string',
    external_id: 'string',
    name: 'string',
    email: 'string',
    contact: 'string',
    address_line1: 'string',
    address_line2: 'string',
    address_city: 'string',
    address_state: 'string',
    address_postal_code: 'string',
    address_country: 'string',
    timezone: 'string',
    parent_customer_id: 'string',
    status: 'string',
    created_at: 'date',
    updated_at: 'date',
    created_by: 'string',
    updated_by: 'string',
  },
  expand: ['integrations'],
  metadata: true,
};

const ParentAnswer = customerShape.extend({
  integrations: z.null().meta({ description: 'Always null inside another record.' }),
  parent_customer: z.null().meta({ description: 'Always null, because a parent customer has no parent.' }),
});

export const CustomerAnswer = customerShape
  .extend({
    integrations: z
      .array(integrationMappingShape)
      .nullable()
      .meta({ description: 'Counterparts at connected providers; null unless `expand` names `integrations`.' }),
    parent_customer: ParentAnswer.nullable().meta({
      description: 'Parent customer; null without one, and inside another record.',
    }),
  })
  .meta({ id: 'CustomerResponse' });

export const CustomerListAnswer = listAnswer(CustomerAnswer, 'ListCustomersResponse');
