import { definePriceUnit } from '../../../core/catalog/price-unit/record.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { PriceUnitModel } from '../../../storage/models/catalog/price-unit.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, type Route, toAuthor, toChangeOptions } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import {
  CreatePriceUnit,
  PriceUnitAnswer,
  PriceUnitFilter,
  PriceUnitListAnswer,
  priceUnitGrammar,
  UpdatePriceUnit,
} from './schema.ts';

const tag = 'Price units';

const units = standardRoutes({
  noun: 'price',
  called: { path: '/prices/units', name: 'PriceUnit', words: 'price unit' },
  tag,
  answer: PriceUnitAnswer,
  model: PriceUnitModel,
  show: (unit) => unit,
  list: { filter: PriceUnitFilter, answer: PriceUnitListAnswer, find: findPriceUnits },
});

export const priceUnitRoutes: Route[] = [
  units.create({
    summary: 'Create a price unit',
    description:
      'Creates a custom currency. Prices with `price_unit_type` CUSTOM are defined in it, and charged in its base ' +
      'currency at its rate.',
    body: CreatePriceUnit,
    handle: ({ body }, context) => {
      const unit = definePriceUnit(body);
      const record = { id: newId('price_unit', context.now.getTime()), ...unit, ...createdBy(toAuthor(context)) };
      const conflict = `a price unit with code ${unit.code} exists already`;
      return PriceUnitModel.add(context.scope, record, { database: context.services.postgres, conflict });
    },
  }),
  units.list,
  units.search,
  units.read({ summary: 'Get a price unit', description: 'Returns the unit, even if it is archived.' }),
  units.readBy({
    summary: 'Get a price unit by code',
    description:
      'Returns the published unit with this code. Codes are case-insensitive. An archived unit does not occupy its code.',
    under: 'code',
    key: 'code',
    operation: 'Code',
    about: 'Code of the unit.',
    fetch: (scope, code, database) => PriceUnitModel.fetchByCode(scope, code, database),
  }),
  units.change({
    summary: 'Update a price unit',
    description:
      'Changes the name or the metadata. Code, currency and rate cannot change; create another unit for another rate.',
    body: UpdatePriceUnit,
    handle: ({ params, body }, context) =>
      PriceUnitModel.changePublished(context.scope, { id: params.id, changes: body }, toChangeOptions(context)),
  }),
  units.archive({
    summary: 'Archive a price unit',
    description:
      'Archives the unit. New prices cannot use it, and its code becomes free. Existing prices retain its rate.',
    handle: async ({ params }, context) => {
      await PriceUnitModel.changePublished(
        context.scope,
        { id: params.id, changes: { status: 'archived' } },
        toChangeOptions(context),
      );
    },
  }),
];

async function findPriceUnits(input: PriceUnitFilter, context: Context) {
  const query = narrow(PriceUnitModel.in(context.scope, context.services.postgres), [['id', input.price_unit_ids]]);
  return fetchPage(query, input, priceUnitGrammar);
}
