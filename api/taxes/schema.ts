/** Requests and answers of tax rates and their associations. */
import { z } from 'zod';
import { optionalKey, requiredKey } from '../../core/record.ts';
import {
  taxAssociationFields,
  taxAssociationShape,
  taxEntityType,
  taxRateFields,
  taxRateScope,
  taxRateShape,
} from '../../core/tax/record.ts';
import { BASE_COLUMNS, flag, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';

export const CreateTaxRate = taxRateFields.meta({
  id: 'CreateTaxRateRequest',
  example: { name: 'VAT', code: 'vat_de', tax_rate_type: 'percentage', percentage_value: '19' },
});

export const UpdateTaxRate = taxRateShape
  .pick({ name: true, code: true, tax_rate_status: true })
  .partial()
  .extend({
    description: z.string().nullish().meta({ description: 'For people; null clears it.' }),
    metadata: taxRateFields.shape.metadata.unwrap().optional(),
  })
  .meta({ id: 'UpdateTaxRateRequest', example: { description: 'The regular rate' } });

export const TaxRateFilter = listShape({
  taxrate_ids: matchAny('rates'),
  taxrate_codes: matchAny('codes'),
  scope: taxRateScope.optional().meta({ description: 'Rates of this scope.' }),
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
/** Not in an envelope: so the published client wants it. */
export const TaxRateListAnswer = z.array(TaxRateAnswer);

export const CreateTaxAssociation = taxAssociationFields
  .extend({
    tax_rate_code: requiredKey.meta({ description: 'The code of a published rate that is ACTIVE.' }),
    entity_type: taxEntityType
      .nullish()
      .meta({ description: 'What is taxed with it; a customer where `external_customer_id` is stated.' }),
    entity_id: optionalKey.optional().meta({ description: 'The id of that; of a tenant it may be left out.' }),
    external_customer_id: optionalKey.optional().meta({ description: 'A customer by your own id.' }),
  })
  .meta({
    id: 'CreateTaxAssociationRequest',
    example: { tax_rate_code: 'vat_de', external_customer_id: 'acme', priority: 10 },
  });

/** The dates and the currency say where a rate holds; those of one that runs may be changed, which rate it is may not. */
export const UpdateTaxAssociation = z
  .object({
    priority: taxAssociationShape.shape.priority.unwrap().optional().meta({
      description: 'Rates with a smaller one stand first; not below 0.',
    }),
    auto_apply: z.boolean().optional().meta({ description: 'Whether new subscriptions of a customer take it over.' }),
    start_date: taxAssociationShape.shape.start_date.optional(),
    end_date: taxAssociationFields.shape.end_date.unwrap().optional().meta({
      description: 'Until when, exclusive; null opens it.',
    }),
    metadata: taxAssociationFields.shape.metadata.unwrap().optional(),
  })
  .meta({ id: 'TaxAssociationUpdateRequest', example: { priority: 20 } });

export const TaxAssociationFilter = listShape({
  tax_association_ids: matchAny('associations'),
  tax_rate_ids: matchAny('rates'),
  tax_rate_id: z.string().optional().meta({ description: 'Exactly this rate.' }),
  entity_type: taxEntityType.optional().meta({ description: 'What is taxed.' }),
  entity_id: z.string().optional().meta({ description: 'The id of what is taxed.' }),
  external_customer_id: z.string().optional().meta({ description: 'A customer by your own id, which must exist.' }),
  currency: z.string().optional().meta({ description: 'Those of this currency alone.' }),
  auto_apply: flag.optional().meta({ description: 'Whether new subscriptions take it over.' }),
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
      description: 'Of one that is asked for; of a list where `expand` names it.',
    }),
  })
  .meta({ id: 'TaxAssociationResponse' });
export const TaxAssociationListAnswer = listAnswer(TaxAssociationAnswer, 'ListTaxAssociationsResponse');
