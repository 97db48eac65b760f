/** Webhook endpoints: create, find, change, delete, rotate the secret, test. */

import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  rotateSecret,
} from '../../../actions/delivery/webhooks/change-endpoint.ts';
import { testEndpoint } from '../../../actions/delivery/webhooks/test-endpoint.ts';
import { notAllowed } from '../../../core/foundation/error.ts';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import { WebhookDeliveryModel } from '../../../storage/models/delivery/webhook-delivery.ts';
import { WebhookEndpointModel } from '../../../storage/models/delivery/webhook-endpoint.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
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
    summary: 'Create a webhook endpoint',
    description:
      'Creates an endpoint and shows its secret, once. Events of the environment are posted to its URL, signed ' +
      'according to Standard Webhooks. A private address is refused at connection time.',
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
    summary: 'List webhook endpoints',
    description: 'Returns the endpoints of the environment without their secrets, newest first.',
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
    summary: 'Get a webhook endpoint',
    description: 'Returns the endpoint without its secret, even if it is deleted.',
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
    summary: 'Update a webhook endpoint',
    description:
      'Changes the sent fields only. Enabling an endpoint that was switched off also sends its pending deliveries.',
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
    summary: 'Delete a webhook endpoint',
    description:
      'Deletes the endpoint and abandons its pending deliveries. Past deliveries can be read until their retention ends.',
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
    summary: "Rotate an endpoint's secret",
    description:
      'Creates a new secret, which is shown once. While both secrets are valid, each request has two signatures, so ' +
      'that the receiver can switch at any time.',
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
    summary: 'Send a test event',
    description:
      'Sends an event to an enabled endpoint, regardless of its filter. The answer is the delivery, whose status ' +
      'is updated a moment later.',
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
