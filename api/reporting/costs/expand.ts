/** Builds the answers of cost sheets, with the prices that `expand` names. */

import { PriceModel } from '../../../storage/models/catalog/price.ts';
import type { CostsheetModel } from '../../../storage/models/reporting/costsheet.ts';
import { showPrices } from '../../catalog/prices/expand.ts';
import type { Context } from '../../http/route.ts';

export async function showCostsheets(sheets: readonly CostsheetModel[], expand: readonly string[], context: Context) {
  const withMeters = expand.includes('meters');
  const prices =
    withMeters || expand.includes('prices') ? await loadCostsheetPrices(sheets, withMeters, context) : null;
  return sheets.map((sheet) => ({
    ...sheet,
    prices: prices === null ? null : prices.filter(({ entity_id }) => entity_id === sheet.id),
  }));
}

export async function showCostsheet(sheet: CostsheetModel, expand: readonly string[], context: Context) {
  const [shown] = await showCostsheets([sheet], expand, context);
  return shown!;
}

async function loadCostsheetPrices(sheets: readonly CostsheetModel[], withMeters: boolean, context: Context) {
  const ids = sheets.map(({ id }) => id);
  const prices = await PriceModel.current(context.scope, context.now, context.services.postgres)
    .where('entity_type', 'COSTSHEET')
    .whereIn('entity_id', ids)
    .orderBy(['created_at', 'sequence']);
  return showPrices(prices, withMeters ? ['meters'] : [], context);
}
