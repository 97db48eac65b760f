/** Tax associations assign rates to entities: attach, find, change, remove. */
import { attachTaxRate, loadChosenEntity } from '../../../actions/catalog/taxes/attach-tax-rate.ts';
import { changeTaxAssociation } from '../../../actions/catalog/taxes/change-tax-association.ts';
import { TaxAssociationModel } from '../../../storage/models/catalog/tax-association.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor, toChangeOptions } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import {
  CreateTaxAssociation,
  TaxAssociationAnswer,
  TaxAssociationFilter,
  TaxAssociationListAnswer,
  taxAssociationGrammar,
  UpdateTaxAssociation,
} from './schema.ts';

const tag = 'Taxes';

const associations = standardRoutes({
  noun: 'tax',
  called: { path: '/taxes/associations', name: 'TaxAssociation', words: 'tax association' },
  tag,
  answer: TaxAssociationAnswer,
  model: TaxAssociationModel,
  show: showAssociation,
  list: { filter: TaxAssociationFilter, answer: TaxAssociationListAnswer, find: findAssociations },
});

export const taxAssociationRoutes: Route[] = [
  {
    ...associations.create({
      summary: 'Attach a tax rate',
      description:
        'Attaches a rate to a customer, a subscription, an invoice or the tenant. The rate is named by its code, ' +
        'a customer by its id or its external id. Refused with 409 if the entity has the rate already.',
      body: CreateTaxAssociation,
      handle: ({ body }, context) => {
        const { tax_rate_code, entity_type, entity_id, external_customer_id, ...terms } = body;
        const entity = { entity_type, entity_id, external_customer_id };
        const request = { tax_rate_code, entity, terms, author: toAuthor(context) };
        return attachTaxRate(context.services, context.scope, request);
      },
    }),
    success: 200,
  },
  associations.list,
  associations.read({
    summary: 'Get a tax association',
    description: 'Returns the association with its rate, even if it was removed.',
  }),
  associations.change({
    summary: 'Update a tax association',
    description:
      'Changes the sent fields only: priority, dates, auto_apply or metadata. The rate cannot change; create ' +
      'another association instead.',
    body: UpdateTaxAssociation,
    handle: ({ params, body }, context) =>
      changeTaxAssociation(context.services, context.scope, {
        id: params.id,
        changes: body,
        author: toAuthor(context),
      }),
  }),
  route({
    method: 'delete',
    path: '/taxes/associations/:id',
    operation_id: 'deleteTaxAssociation',
    summary: 'Detach a tax rate',
    description: 'Archives the association and returns it. Existing invoices retain their taxes.',
    tag,
    access: 'tax:write',
    params: idParams,
    success: 200,
    answer: TaxAssociationAnswer,
    handle: async ({ params }, context) => {
      const change = { id: params.id, changes: { status: 'archived' } } as const;
      const archived = await TaxAssociationModel.changePublished(context.scope, change, toChangeOptions(context));
      return showAssociation(archived, context);
    },
  }),
];

async function findAssociations(input: TaxAssociationFilter, context: Context) {
  const { scope, services } = context;
  const entity = await loadChosenEntity(input, scope, services.postgres);
  const query = narrow(TaxAssociationModel.in(scope, services.postgres), [
    ['id', input.tax_association_ids],
    ['tax_rate_id', input.tax_rate_ids],
    ['tax_rate_id', input.tax_rate_id],
    ['entity_type', entity.entity_type],
    ['entity_id', entity.entity_id],
    ['currency', input.currency?.toLowerCase()],
    ['auto_apply', input.auto_apply],
  ]);
  const page = await fetchPage(query, input, taxAssociationGrammar);
  return { ...page, items: await showAssociations(page.items, input.expand ?? [], context) };
}

async function showAssociations(
  associations: readonly TaxAssociationModel[],
  expand: readonly string[],
  context: Context,
) {
  const ids = expand.includes('tax_rate') ? associations.map(({ tax_rate_id }) => tax_rate_id) : [];
  const rates = await TaxRateModel.byId(context.scope, ids, context.services.postgres);
  return associations.map((association) => ({ ...association, tax_rate: rates.get(association.tax_rate_id) ?? null }));
}

async function showAssociation(association: TaxAssociationModel, context: Context) {
  const [shown] = await showAssociations([association], ['tax_rate'], context);
  return shown!;
}
