/** Endpoints of webhooks: create, find, change, delete, a new secret, a test. */

import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  rotateSecret,
} from '../../actions/webhooks/change-endpoint.ts';
import { testEndpoint } from '../../actions/webhooks/test-endpoint.ts';
import { notAllowed } from '../../core/error.ts';
import { narrow } from '../../storage/models/page.ts';
import { WebhookDeliveryModel } from '../../storage/models/webhook-delivery.ts';
import { WebhookEndpointModel } from '../../storage/models/webhook-endpoint.ts';
import { createSealer } from '../../storage/sealing.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../http/route.ts';
import {
  CreateEndpoint,
  DeliveryAnswer,
  EndpointAnswer,
  EndpointFilter,
  EndpointListAnswer,
  EndpointSecretAnswer,
  endpointGrammar,
  RotateSecret,
  UpdateEndpoint,
} from './schema.ts';

const tag = 'Webhooks';
const one = { tag, path: '/webhooks/endpoints/:id', params: idParams } as const;

export const endpointRoutes: Route[] = [
  route({
    method: 'post',
    path: '/webhooks/endpoints',
    operation_id: 'createWebhookEndpoint',
    summary: 'Create an endpoint of webhooks; its secret is shown once',
    description:
      'The events of the environment are posted to its URL, signed as Standard Webhooks has it. A private address is refused when it is connected to.',
    tag,
    access: 'webhook:write',
    shows_secret: true,
    body: CreateEndpoint,
    success: 201,
    answer: EndpointSecretAnswer,
    idempotency: 'shown_once',
    handle: ({ body }, context) => {
      if (context.services.config.SVIX_TOKEN !== undefined)
        throw notAllowed('Svix has the endpoints: GET /webhooks/dashboard tells where');
      return createEndpoint(context.services, context.scope, {
        fields: body,
        author: toAuthor(context),
        sealing: buildSealing(context),
      });
    },
  }),
  route({
    method: 'get',
    path: '/webhooks/endpoints',
    operation_id: 'listWebhookEndpoints',
    summary: 'List endpoints of webhooks',
    description: 'Those of the environment, newest first, without their secrets.',
    tag,
    access: 'webhook:read',
    query: EndpointFilter,
    success: 200,
    answer: EndpointListAnswer,
    handle: ({ query }, context) => findEndpoints(query, context),
  }),
  route({
    ...one,
    method: 'get',
    operation_id: 'getWebhookEndpoint',
    summary: 'Get an endpoint of webhooks',
    description: 'Without its secret; a deleted one is answered, too.',
    access: 'webhook:read',
    success: 200,
    answer: EndpointAnswer,
    handle: ({ params }, { scope, services }) =>
      WebhookEndpointModel.fetch(scope, params.id, { database: services.postgres }),
  }),
  route({
    ...one,
    method: 'put',
    operation_id: 'updateWebhookEndpoint',
    summary: 'Update an endpoint of webhooks',
    description:
      'Changes what is sent; the rest stays. One that was switched off is enabled again here, and what waited for it goes out.',
    access: 'webhook:write',
    body: UpdateEndpoint,
    success: 200,
    answer: EndpointAnswer,
    handle: ({ params, body }, context) =>
      changeEndpoint(context.services, context.scope, { id: params.id, changes: body, author: toAuthor(context) }),
  }),
  route({
    ...one,
    method: 'delete',
    operation_id: 'deleteWebhookEndpoint',
    summary: 'Delete an endpoint of webhooks',
    description: 'What still waited for it is given up. What it was told can be read for as long as it is kept.',
    access: 'webhook:write',
    success: 204,
    handle: ({ params }, context) =>
      deleteEndpoint(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    ...one,
    method: 'post',
    path: '/webhooks/endpoints/:id/secret/rotate',
    operation_id: 'rotateWebhookSecret',
    summary: 'Give an endpoint a new secret; it is shown once',
    description: 'While both are good each body has two signatures, so that the receiver can change at any moment.',
    access: 'webhook:write',
    shows_secret: true,
    body: RotateSecret,
    success: 200,
    answer: EndpointSecretAnswer,
    idempotency: 'shown_once',
    handle: ({ params, body }, context) =>
      rotateSecret(context.services, context.scope, {
        id: params.id,
        ...body,
        author: toAuthor(context),
        sealing: buildSealing(context),
      }),
  }),
  route({
    ...one,
    method: 'post',
    path: '/webhooks/endpoints/:id/test',
    operation_id: 'testWebhookEndpoint',
    summary: 'Send a test event to an endpoint',
    description:
      'Whatever its filter, while it is enabled. The answer is the delivery, which tells a moment later how it went.',
    access: 'webhook:write',
    success: 202,
    answer: DeliveryAnswer,
    idempotency: {
      replay: (done, _input, { scope, services }) =>
        WebhookDeliveryModel.fetch(scope, done.made('webhook_delivery'), { database: services.postgres }),
    },
    handle: ({ params }, context) =>
      testEndpoint(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];

function findEndpoints(input: EndpointFilter, { scope, services }: Context) {
  const query = narrow(WebhookEndpointModel.in(scope, services.postgres), [['endpoint_status', input.endpoint_status]]);
  return fetchPage(query, input, endpointGrammar);
}

function buildSealing({ services }: Context) {
  return createSealer(services.config.SECRETS_KEYS);
}
