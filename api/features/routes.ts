/** Features: create, find, change, copy, archive. */
import { changeFeature } from '../../actions/catalogue/change-feature.ts';
import { cloneFeature } from '../../actions/catalogue/clone-feature.ts';
import { createFeature } from '../../actions/catalogue/create-feature.ts';
import { notFound } from '../../core/error.ts';
import { updatedBy } from '../../core/stamp.ts';
import { FeatureModel } from '../../storage/models/feature.ts';
import { narrow } from '../../storage/models/page.ts';
import { fetchPage } from '../http/list.ts';
import { authorOf, type Context, idParams, MessageAnswer, type Route, route } from '../http/route.ts';
import { showFeature, showFeatures } from './expand.ts';
import {
  CloneFeature,
  CreateFeature,
  FeatureAnswer,
  FeatureFilter,
  FeatureListAnswer,
  featureGrammar,
  UpdateFeature,
} from './schema.ts';

const tag = 'Features';

export const featureRoutes: Route[] = [
  route({
    method: 'post',
    path: '/features',
    operation_id: 'createFeature',
    summary: 'Create a feature, with an inline meter if wanted',
    tag,
    access: 'feature:write',
    body: CreateFeature,
    success: 201,
    answer: FeatureAnswer,
    handle: async ({ body }, context) => {
      const given = { feature: body, author: authorOf(context) };
      return showFeature(await createFeature(context.services, context.scope, given), context);
    },
  }),
  route({
    method: 'get',
    path: '/features',
    operation_id: 'listFeatures',
    summary: 'List features',
    tag,
    access: 'feature:read',
    query: FeatureFilter,
    success: 200,
    answer: FeatureListAnswer,
    handle: ({ query }, context) => findFeatures(query, context),
  }),
  route({
    method: 'post',
    path: '/features/search',
    operation_id: 'queryFeature',
    summary: 'Search features',
    tag,
    access: 'feature:read',
    body: FeatureFilter,
    success: 200,
    answer: FeatureListAnswer,
    handle: ({ body }, context) => findFeatures(body, context),
  }),
  route({
    method: 'get',
    path: '/features/:id',
    operation_id: 'getFeature',
    summary: 'Get a feature with its meter',
    tag,
    access: 'feature:read',
    params: idParams,
    success: 200,
    answer: FeatureAnswer,
    handle: async ({ params }, context) =>
      showFeature(await FeatureModel.fetch(context.scope, params.id, { database: context.services.postgres }), context),
  }),
  route({
    method: 'put',
    path: '/features/:id',
    operation_id: 'updateFeature',
    summary: "Update a feature, or its meter's filters",
    tag,
    access: 'feature:write',
    params: idParams,
    body: UpdateFeature,
    success: 200,
    answer: FeatureAnswer,
    handle: async ({ params, body: { filters, ...changes } }, context) => {
      const change = { id: params.id, changes, filters, author: authorOf(context) };
      return showFeature(await changeFeature(context.services, context.scope, change), context);
    },
  }),
  route({
    method: 'delete',
    path: '/features/:id',
    operation_id: 'deleteFeature',
    summary: 'Archive a feature',
    tag,
    access: 'feature:write',
    params: idParams,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params }, context) => {
      const archived = await FeatureModel.in(context.scope, context.services.postgres)
        .where({ id: params.id, status: 'published' })
        .patch({ status: 'archived', ...updatedBy(authorOf(context)) });
      if (archived === 0) throw notFound('feature', params.id);
      return { message: 'feature deleted' };
    },
  }),
  route({
    method: 'post',
    path: '/features/:id/clone',
    operation_id: 'cloneFeature',
    summary: 'Copy a feature under a new name and lookup key',
    tag,
    access: 'feature:write',
    params: idParams,
    body: CloneFeature,
    success: 201,
    answer: FeatureAnswer,
    handle: async ({ params, body }, context) => {
      const clone = { id: params.id, fields: body, author: authorOf(context) };
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
