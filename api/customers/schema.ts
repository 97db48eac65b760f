/** Requests and answers of customers. */
import { z } from 'zod';
import type { NamedParent } from '../../actions/customers/parent-customer.ts';
import { customerFields, customerShape } from '../../core/customer/record.ts';
import { optionalKey, withoutEffect } from '../../core/record.ts';
import { taxOverrides } from '../../core/tax/stated.ts';
import { anyOf, expand, type ListGrammar, listAnswer, listShape } from '../http/list.ts';

/** Parts of a request whose resource does not exist here: refused when they say something, never quietly dropped. */
const notYet = (what: string) =>
  z
    .array(z.unknown())
    .max(0, { error: `${what} are not supported` })
    .nullish()
    .meta({ description: 'Not there yet: refused when it says something.' });

const taxParts = {
  tax_rate_overrides: taxOverrides.optional().meta({ description: 'Tax rates that it begins with.' }),
};
const absentParts = {
  integration_entity_mapping: notYet('integration mappings'),
};

/** Which customer it belongs to, by either of its ids. */
const parentParts = {
  parent_customer_id: optionalKey.optional().meta(customerShape.shape.parent_customer_id.meta()!),
  parent_customer_external_id: optionalKey
    .optional()
    .meta({ description: 'The same by the id that the events of the parent name.' }),
};
/** No customer is led through a workflow when it comes. */
const workflowParts = { skip_onboarding_workflow: withoutEffect, onboarding_workflow_name: withoutEffect };

const { external_id, name, timezone } = customerFields.shape;

export const CreateCustomer = customerFields
  .partial()
  .extend({
    external_id,
    name: name.nullish(),
    timezone: z
      .union([z.literal(''), timezone])
      .nullish()
      .meta(timezone.meta()!),
    ...taxParts,
    ...absentParts,
    ...parentParts,
    ...workflowParts,
  })
  .meta({
    id: 'CreateCustomerRequest',
    example: {
      external_id: 'acme',
      name: 'Acme',
      email: 'billing@example.com',
      address_country: 'DE',
      timezone: 'Europe/Berlin',
      metadata: { tier: 'gold' },
    },
  });

export const UpdateCustomer = customerFields
  .partial()
  .extend({
    name: name.refine((text) => text.trim() !== '', { error: 'must not be blank' }).optional(),
    integration_entity_mapping: absentParts.integration_entity_mapping,
    ...parentParts,
  })
  .meta({ id: 'UpdateCustomerRequest', example: { name: 'Acme Corporation', metadata: { tier: 'platinum' } } });
export type UpdateCustomer = z.output<typeof UpdateCustomer>;

const notKept = Object.keys({ ...taxParts, ...absentParts, ...parentParts, ...workflowParts });

/** What a request says of the parent. */
export function namedParent({ parent_customer_id, parent_customer_external_id }: NamedParent): NamedParent {
  return { parent_customer_id, parent_customer_external_id };
}

/** What a request says of the record itself. */
export function fieldsOf<Body extends object>(body: Body): Omit<Body, NotKept> {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !notKept.includes(key))) as Omit<Body, NotKept>;
}
type NotKept = keyof typeof taxParts | keyof typeof absentParts | keyof typeof parentParts | keyof typeof workflowParts;

/** PUT /customers names the customer in the query, by either id or both. */
export const CustomerChoice = z.object({
  id: z.string().optional().meta({ description: 'Id of the customer.' }),
  external_customer_id: z.string().optional().meta({ description: 'The customer by the id that its events name.' }),
});
export type CustomerChoice = z.output<typeof CustomerChoice>;

export const CustomerExpand = z.object({ expand });

export const CustomerFilter = listShape({
  customer_ids: anyOf('customers'),
  external_ids: anyOf('external ids'),
  external_id: z.string().optional().meta({ description: 'The id that the events of the customer name.' }),
  email: z.string().optional().meta({ description: 'Exactly this address.' }),
  parent_customer_ids: anyOf('customers, to which it belongs'),
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

const NOT_YET = { description: 'Integrations are not there yet.' };

const ParentAnswer = customerShape.extend({
  integrations: z.null().meta(NOT_YET),
  parent_customer: z.null().meta({ description: 'A parent belongs to nobody.' }),
});

/** `integrations` are not kept here; the published client needs the key. */
export const CustomerAnswer = customerShape
  .extend({
    integrations: z.null().meta(NOT_YET),
    parent_customer: ParentAnswer.nullable().meta({
      description: 'The customer that it belongs to; null without, and inside of another record.',
    }),
  })
  .meta({ id: 'CustomerResponse' });

export const CustomerListAnswer = listAnswer(CustomerAnswer, 'ListCustomersResponse');
