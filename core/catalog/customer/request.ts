/** Fields of a customer in a request or in a row of an imported file. */
import { z } from 'zod';
import { keyText, optionalKey, requiredKey, withoutEffect } from '../../foundation/record.ts';
import { taxOverrides } from '../tax/overrides.ts';
import { customerFields, customerShape } from './record.ts';

const taxParts = {
  tax_rate_overrides: taxOverrides.optional().meta({ description: 'Tax rates that the new customer starts with.' }),
};
/** Ids of the customer at connected providers. */
export const integrationParts = {
  integration_entity_mapping: z
    .array(
      z.object({
        provider: keyText.max(50).min(1).meta({
          description: 'Provider, to which the environment has a connection.',
        }),
        id: requiredKey.meta({ description: 'Id of the customer at the provider.' }),
      }),
    )
    .max(20)
    .nullish()
    .meta({
      description:
        'Ids of the customer at connected providers, at most 20. An update adds these ids to the existing ones.',
    }),
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
    ...integrationParts,
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

const NON_RECORD_FIELDS = Object.keys({ ...taxParts, ...integrationParts, ...parentParts, ...workflowParts });

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
  | keyof typeof integrationParts
  | keyof typeof parentParts
  | keyof typeof workflowParts;
