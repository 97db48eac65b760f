/** Fields of a customer in a request or in a row of an imported file. */
import { z } from 'zod';
import { optionalKey, withoutEffect } from '../../foundation/record.ts';
import { taxOverrides } from '../tax/overrides.ts';
import { customerFields, customerShape } from './record.ts';

/** Parts of a request without a resource here. A non-empty value is refused, never silently dropped. */
const notYet = (what: string) =>
  z
    .array(z.unknown())
    .max(0, { error: `${what} are not supported` })
    .nullish()
    .meta({ description: 'Not supported yet: a non-empty list is refused.' });

const taxParts = {
  tax_rate_overrides: taxOverrides.optional().meta({ description: 'Tax rates that the new customer starts with.' }),
};
export const absentParts = {
  integration_entity_mapping: notYet('integration mappings'),
};

/** The parent customer, by either of its ids. */
export const parentParts = {
  parent_customer_id: optionalKey.optional().meta(customerShape.shape.parent_customer_id.meta()!),
  parent_customer_external_id: optionalKey
    .optional()
    .meta({ description: 'Your own id of the parent customer. An alternative to `parent_customer_id`.' }),
};
/** There are no onboarding workflows, so these keys have no effect. */
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

type ParentReference = {
  parent_customer_id?: string | null | undefined;
  parent_customer_external_id?: string | null | undefined;
};

const NON_RECORD_FIELDS = Object.keys({ ...taxParts, ...absentParts, ...parentParts, ...workflowParts });

export function toParentReference({
  parent_customer_id,
  parent_customer_external_id,
}: ParentReference): ParentReference {
  return { parent_customer_id, parent_customer_external_id };
}

/** Fields of the request that belong to the record itself. */
export function toRecordFields<Body extends object>(body: Body): Omit<Body, NonRecordField> {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !NON_RECORD_FIELDS.includes(key))) as Omit<
    Body,
    NonRecordField
  >;
}
type NonRecordField =
  | keyof typeof taxParts
  | keyof typeof absentParts
  | keyof typeof parentParts
  | keyof typeof workflowParts;
