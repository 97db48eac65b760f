/** Features: create, find, change, copy, archive. */
import { archiveFeature } from '../../../actions/catalog/features/archive-feature.ts';
import { changeFeature } from '../../../actions/catalog/features/change-feature.ts';
import { cloneFeature } from '../../../actions/catalog/features/clone-feature.ts';
import { createFeature } from '../../../actions/catalog/features/create-feature.ts';
import { CreateFeature } from '../../../core/catalog/feature/request.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import { showFeature, showFeatures } from './expand.ts';
import {
  CloneFeature,
  FeatureAnswer,
  FeatureFilter,
  FeatureListAnswer,
  featureGrammar,
  UpdateFeature,
} from './schema.ts';

const tag = 'Features';

const features = standardRoutes({
  noun: 'feature',
  tag,
  answer: FeatureAnswer,
  model: FeatureModel,
  show: showFeature,
  list: { filter: FeatureFilter, answer: FeatureListAnswer, find: findFeatures },
});

export const featureRoutes: Route[] = [
  features.create({
    summary: 'Create a feature',
    description:
      'Creates a feature. A metered feature names a meter in `meter_id`, or defines a new one in `meter`, which is created with it. Features of other types have no meter. Without a lookup key one is derived from the name.',
    body: CreateFeature,
    handle: ({ body }, context) =>
      createFeature(context.services, context.scope, { feature: body, author: toAuthor(context) }),
  }),
  features.list,
  features.search,
  features.read({
    summary: 'Get a feature',
    description: 'Returns the feature with its meter. An archived feature is returned too.',
  }),
  features.change({
    summary: 'Update a feature',
    description:
      'Changes the fields in the request. `filters` replaces the filters of its meter, for every feature and price with that meter, and its past usage is recounted.',
    body: UpdateFeature,
    handle: ({ params, body: { filters, ...changes } }, context) =>
      changeFeature(context.services, context.scope, { id: params.id, changes, filters, author: toAuthor(context) }),
  }),
  features.archive({
    summary: 'Archive a feature',
    description:
      'Archives the feature and releases its lookup key. Its meter continues to count. Refused while a plan, an add-on or a subscription that is not cancelled grants it.',
    handle: ({ params }, context) =>
      archiveFeature(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    method: 'post',
    path: '/features/:id/clone',
    operation_id: 'cloneFeature',
    summary: 'Copy a feature',
    description: 'Creates a copy with a new name and lookup key. The copy counts with the same meter.',
    tag,
    access: 'feature:write',
    params: idParams,
    body: CloneFeature,
    success: 201,
    answer: FeatureAnswer,
    idempotency: features.once,
    handle: async ({ params, body }, context) => {
      const clone = { id: params.id, fields: body, author: toAuthor(context) };
      return showFeature(await cloneFeature(context.services, context.scope, clone), context);
    },
  }),
];

async function findFeatures(input: FeatureFilter, context: Context) {
  const query = narrow(FeatureModel.in(context.scope, context.services.postgres), [
    ['id', input.feature_ids],
    ['meter_id', input.meter_ids],
    ['lookup_key', input.lookup_key],
    ['lookup_key', input.lookup_keys],
    ['name', 'contains', input.name_contains],
  ]);
  const page = await fetchPage(query, input, featureGrammar);
  return { ...page, items: await showFeatures(page.items, input.expand ?? [], context) };
}
