/** The cost of quantities under a draft, as the service computes it. One request has the chosen quantity and all points of the curve. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, readData } from '../../client/client.ts';
import { buildCostedPrice, type PriceDraft } from './price-draft.ts';
import { addScale, listCurveQuantities, type PricedQuantity, type PriceScale } from './price-figures.ts';

export type CostAnswer = { readonly quantities: readonly string[]; readonly items: readonly PricedQuantity[] };

/** Points of the curve, the chosen quantity, and the one a scale further. */
export function addScaleQuantities(draft: PriceDraft, quantity: string, scale: PriceScale): string[] {
  return [...new Set([...listCurveQuantities(draft, quantity), quantity, addScale(quantity, scale)])];
}

export function buildCostQuery(draft: PriceDraft, quantities: readonly string[]) {
  const body = { price: buildCostedPrice(draft), quantities };
  return queryOptions({
    queryKey: ['/prices/cost', body] as const,
    queryFn: async (): Promise<CostAnswer> => {
      const { items } = await readData(api.POST('/prices/cost', { body: body as never }));
      return { quantities, items };
    },
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}
