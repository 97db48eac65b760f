/** Requests and answers of add-ons. */
import { z } from 'zod';
import { ADDON_TYPES, addonShape } from '../../../core/catalog/addon/record.ts';
import { anyCase, orDefault } from '../../../core/foundation/record.ts';
import { type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';
import { CreditGrantAnswer } from '../credit-grants/schema.ts';
import { EntitlementAnswer } from '../entitlements/schema.ts';
import { PriceAnswer } from '../prices/schema.ts';

const { name, lookup_key, type, description, metadata } = addonShape.shape;

export const CreateAddon = z
  .object({
    name,
    lookup_key,
    description: description.optional(),
    metadata: metadata.optional(),
    type: orDefault(anyCase(ADDON_TYPES), 'onetime').meta({
      description: `${type.meta()!.description} Default: onetime.`,
    }),
  })
  .meta({
    id: 'CreateAddonRequest',
    example: { name: 'More calls', lookup_key: 'more_calls', type: 'multiple_instance' },
  });

export const UpdateAddon = z
  .object({ name: name.optional(), description: description.optional(), metadata: metadata.optional() })
  .meta({ id: 'UpdateAddonRequest', example: { description: 'Five hundred calls a month' } });

export const AddonFilter = listShape({
  addon_ids: matchAny('add-ons'),
  lookup_keys: matchAny('lookup keys'),
  addon_type: type.optional().meta({ description: 'Type of the add-on.' }),
}).meta({ id: 'AddonFilter', example: { lookup_keys: ['more_calls'], expand: ['prices', 'entitlements.features'] } });
export type AddonFilter = z.output<typeof AddonFilter>;

export const addonGrammar: ListGrammar = {
  columns: {
    id: 'string',
    name: 'string',
    lookup_key: 'string',
    description: 'string',
    type: 'string',
    status: 'string',
    created_at: 'date',
    updated_at: 'date',
    created_by: 'string',
    updated_by: 'string',
  },
  expand: ['prices', 'prices.meters', 'meters', 'entitlements', 'entitlements.features', 'credit_grant'],
  metadata: true,
};

export const AddonAnswer = addonShape
  .extend({
    prices: z.array(PriceAnswer).nullable().meta({ description: 'Prices, if `expand` names them; null otherwise.' }),
    entitlements: z
      .array(EntitlementAnswer)
      .nullable()
      .meta({ description: 'Entitlements, if `expand` names them; null otherwise.' }),
    credit_grants: z
      .array(CreditGrantAnswer)
      .nullable()
      .meta({ description: 'Credit grants, if `expand` names credit_grant; null otherwise.' }),
  })
  .meta({ id: 'AddonResponse' });

export const AddonListAnswer = listAnswer(AddonAnswer, 'ListAddonsResponse');
