import type { z } from 'zod';
import { priceUnitFields, priceUnitShape } from '../../../core/catalog/price-unit/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';

export const CreatePriceUnit = priceUnitFields.meta({
  id: 'CreatePriceUnitRequest',
  example: { name: 'Credits', code: 'crd', symbol: '¢', base_currency: 'usd', conversion_rate: '0.01' },
});

export const UpdatePriceUnit = priceUnitFields
  .pick({ name: true })
  .partial()
  .extend({ metadata: priceUnitFields.shape.metadata.unwrap().optional() })
  .meta({ id: 'UpdatePriceUnitRequest', example: { name: 'Prepaid credits' } });

export const PriceUnitFilter = listShape({ price_unit_ids: matchAny('price units') }).meta({
  id: 'PriceUnitFilter',
  example: { sort: [{ field: 'code', direction: 'asc' }], limit: 10 },
});
export type PriceUnitFilter = z.output<typeof PriceUnitFilter>;

export const priceUnitGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    name: 'string',
    code: 'string',
    symbol: 'string',
    base_currency: 'string',
    conversion_rate: 'number',
  },
};

export const PriceUnitAnswer = priceUnitShape.meta({ id: 'PriceUnitResponse' });
export const PriceUnitListAnswer = listAnswer(PriceUnitAnswer, 'ListPriceUnitsResponse');
