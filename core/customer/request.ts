/** What a customer is made of, whether a request says it or a row of a file. */
import { z } from 'zod';
import { optionalKey, withoutEffect } from '../record.ts';
import { taxOverrides } from '../tax/overrides.ts';
import { customerFields, customerShape } from './record.ts';

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
export const absentParts = {
  integration_entity_mapping: notYet('integration mappings'),
};

/** Which customer it belongs to, by either of its ids. */
export const parentParts = {
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

type ParentReference = {
  parent_customer_id?: string | null | undefined;
  parent_customer_external_id?: string | null | undefined;
};

const NON_RECORD_FIELDS = Object.keys({ ...taxParts, ...absentParts, ...parentParts, ...workflowParts });

/** What a request says of the parent. */
export function toParentReference({
  parent_customer_id,
  parent_customer_external_id,
}: ParentReference): ParentReference {
  return { parent_customer_id, parent_customer_external_id };
}

/** What a request says of the record itself. */
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
