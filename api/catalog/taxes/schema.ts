import { z } from 'zod';
import {
  taxAssociationFields,
  taxAssociationShape,
  taxEntityType,
  taxRateFields,
  taxRateScope,
  taxRateShape,
} from '../../../core/catalog/tax/record.ts';
import { optionalKey, requiredKey } from '../../../core/foundation/record.ts';
import { BASE_COLUMNS, flag, type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';

export const CreateTaxRate = taxRateFields.meta({
  id: 'CreateTaxRateRequest',
  example: { name: 'VAT', code: 'vat_de', tax_rate_type: 'percentage', percentage_value: '19' },
});

export const UpdateTaxRate = taxRateShape
  .pick({ name: true, code: true, tax_rate_status: true })
  .partial()
  .extend({
    description: z.string().nullish().meta({ description: 'Text for people; null clears it.' }),
    metadata: taxRateFields.shape.metadata.unwrap().optional(),
  })
  .meta({ id: 'UpdateTaxRateRequest', example: { description: 'The regular rate' } });

export const TaxRateFilter = listShape({
  taxrate_ids: matchAny('rates'),
  taxrate_codes: matchAny('codes'),
  scope: taxRateScope.optional().meta({ description: 'Matches rates of this scope.' }),
}).meta({ id: 'TaxRateFilter' });
export type TaxRateFilter = z.output<typeof TaxRateFilter>;

export const taxRateGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    name: 'string',
    code: 'string',
    description: 'string',
    tax_rate_type: 'string',
    tax_rate_status: 'string',
    scope: 'string',
    percentage_value: 'number',
    fixed_value: 'number',
  },
};

export const TaxRateAnswer = taxRateShape.meta({ id: 'TaxRateResponse' });
/** A bare array, as the published client expects. */
export const TaxRateListAnswer = z.array(TaxRateAnswer);

export const CreateTaxAssociation = taxAssociationFields
  .extend({
    tax_rate_code: requiredKey.meta({ description: 'Code of a published rate that is ACTIVE.' }),
    entity_type: taxEntityType
      .nullish()
      .meta({ description: 'Kind of the taxed entity. Default: customer, if `external_customer_id` is set.' }),
    entity_id: optionalKey.optional().meta({ description: 'Id of the taxed entity; optional for the tenant.' }),
    external_customer_id: optionalKey
      .optional()
      .meta({ description: 'External id of a customer, as an alternative to `entity_id`.' }),
  })
  .meta({
    id: 'CreateTaxAssociationRequest',
    example: { tax_rate_code: 'vat_de', external_customer_id: 'acme', priority: 10 },
  });

/** Dates of an existing association may change; its rate may not. */
export const UpdateTaxAssociation = z
  .object({
    priority: taxAssociationShape.shape.priority.unwrap().optional().meta({
      description: 'Order of the rates, smallest first; must not be negative.',
    }),
    auto_apply: z
      .boolean()
      .optional()
      .meta({ description: 'True if new subscriptions of a customer inherit the association.' }),
    start_date: taxAssociationShape.shape.start_date.optional(),
    end_date: taxAssociationFields.shape.end_date.unwrap().optional().meta({
      description: 'End of the association, exclusive; null removes the end.',
    }),
    metadata: taxAssociationFields.shape.metadata.unwrap().optional(),
  })
  .meta({ id: 'TaxAssociationUpdateRequest', example: { priority: 20 } });

export const TaxAssociationFilter = listShape({
  tax_association_ids: matchAny('associations'),
  tax_rate_ids: matchAny('rates'),
  tax_rate_id: z.string().optional().meta({ description: 'Matches this tax rate.' }),
  entity_type: taxEntityType.optional().meta({ description: 'Kind of the taxed entity.' }),
  entity_id: z.string().optional().meta({ description: 'Id of the taxed entity.' }),
  external_customer_id: z
    .string()
    .optional()
    .meta({ description: 'External id of a customer; refused if the customer does not exist.' }),
  currency: z
    .string()
    .optional()
    .meta({ description: 'Currency code (ISO 4217), case-insensitive; matches associations of this currency.' }),
  auto_apply: flag
    .optional()
    .meta({ description: 'Matches associations that new subscriptions inherit, or those that they do not.' }),
}).meta({ id: 'TaxAssociationFilter' });
export type TaxAssociationFilter = z.output<typeof TaxAssociationFilter>;

export const taxAssociationGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    tax_rate_id: 'string',
    entity_type: 'string',
    entity_id: 'string',
    priority: 'number',
    auto_apply: 'boolean',
    currency: 'string',
    start_date: 'date',
    end_date: 'date',
  },
  expand: ['tax_rate'],
};

export const TaxAssociationAnswer = taxAssociationShape
  .extend({
    tax_rate: TaxRateAnswer.nullable().meta({
      description: 'Present for a single association; in a list only if `expand` names tax_rate.',
    }),
  })
  .meta({ id: 'TaxAssociationResponse' });
export const TaxAssociationListAnswer = listAnswer(TaxAssociationAnswer, 'ListTaxAssociationsResponse');
