/** Tax rates: create, find, change, archive. */
import { changeTaxRate } from '../../../actions/catalog/taxes/change-tax-rate.ts';
import { defineTaxRate } from '../../../core/catalog/tax/record.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import { taxAssociationRoutes } from './associations.ts';
import {
  CreateTaxRate,
  TaxRateAnswer,
  TaxRateFilter,
  TaxRateListAnswer,
  taxRateGrammar,
  UpdateTaxRate,
} from './schema.ts';

const tag = 'Taxes';

const rates = standardRoutes({
  noun: 'tax',
  called: { path: '/taxes/rates', name: 'TaxRate', words: 'tax rate' },
  tag,
  answer: TaxRateAnswer,
  model: TaxRateModel,
  show: (rate) => rate,
  list: { filter: TaxRateFilter, answer: TaxRateListAnswer, find: findTaxRates },
});

export const taxRoutes: Route[] = [
  rates.create({
    summary: 'Create a tax rate',
    description:
      'Creates a percentage or a fixed amount. The rate has no effect until it is attached (`POST /taxes/associations`).',
    body: CreateTaxRate,
    handle: ({ body }, context) => {
      const rate = defineTaxRate(body);
      const record = { id: newId('tax_rate', context.now.getTime()), ...rate, ...createdBy(toAuthor(context)) };
      const conflict = `a tax rate with code ${rate.code} exists already`;
      return TaxRateModel.add(context.scope, record, { database: context.services.postgres, conflict });
    },
  }),
  { ...rates.list, description: `${rates.list.description} The answer is a bare array, of at most \`limit\` rates.` },
  rates.read({ summary: 'Get a tax rate', description: 'Returns the rate, even if it is archived.' }),
  rates.change({
    summary: 'Update an unused tax rate',
    description: 'Changes the sent fields only. The value cannot change. Refused while the rate has associations.',
    body: UpdateTaxRate,
    handle: ({ params, body }, context) =>
      changeTaxRate(context.services, context.scope, { id: params.id, changes: body, author: toAuthor(context) }),
  }),
  route({
    method: 'delete',
    path: '/taxes/rates/:id',
    operation_id: 'deleteTaxRate',
    summary: 'Archive an unused tax rate',
    description: 'Archives the rate, whose code becomes free. Refused while the rate has associations.',
    tag,
    access: 'tax:write',
    params: idParams,
    success: 204,
    handle: async ({ params }, context) => {
      const change = { id: params.id, changes: { status: 'archived' }, author: toAuthor(context) } as const;
      await changeTaxRate(context.services, context.scope, change);
    },
  }),
  ...taxAssociationRoutes,
];

async function findTaxRates(input: TaxRateFilter, context: Context) {
  const query = narrow(TaxRateModel.in(context.scope, context.services.postgres), [
    ['id', input.taxrate_ids],
    ['code', input.taxrate_codes],
    ['scope', input.scope],
  ]);
  return (await fetchPage(query, input, taxRateGrammar)).items;
}
