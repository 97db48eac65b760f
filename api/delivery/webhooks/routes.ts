/** System events, their deliveries, and their endpoints (endpoints.ts). */
import { createWebhookBackend } from '../../../actions/delivery/webhooks/backend.ts';
import { retryEvent } from '../../../actions/delivery/webhooks/retry-event.ts';
import { canWrite } from '../../../core/foundation/access/role.ts';
import { parseEventName, SYSTEM_EVENTS } from '../../../core/platform/system-event/catalogue.ts';
import { WebhookAttemptModel } from '../../../storage/models/delivery/webhook-attempt.ts';
import { WebhookDeliveryModel } from '../../../storage/models/delivery/webhook-delivery.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { SystemEventModel } from '../../../storage/models/foundation/system-event.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { endpointRoutes } from './endpoints.ts';
import {
  DashboardAnswer,
  DeliveryDetailAnswer,
  DeliveryFilter,
  DeliveryListAnswer,
  deliveryGrammar,
  EventTypesAnswer,
  RetryAnswer,
  RetryWebhook,
  SystemEventAnswer,
  SystemEventFilter,
  SystemEventListAnswer,
  systemEventGrammar,
} from './schema.ts';

const tag = 'Webhooks';
const reads = { tag, access: 'webhook:read', success: 200 } as const;
const retries = { tag, access: 'webhook:write', success: 202, answer: RetryAnswer } as const;
const RETRY =
  'Sends the event at once to the endpoints that have not accepted it, and to those that subscribe to it and ' +
  'never received it. Refused if there are none.';

const eventRoutes: Route[] = [
  route({
    ...reads,
    method: 'get',
    path: '/webhooks/event-types',
    operation_id: 'listWebhookEventTypes',
    summary: 'List system event names',
    description: 'Returns all names, each with the kind of its record and the condition under which it is sent.',
    answer: EventTypesAnswer,
    handle: async () => ({
      items: Object.entries(SYSTEM_EVENTS).map(([event_name, { entity_type, emitted_when }]) => ({
        event_name,
        entity_type,
        description: emitted_when,
      })),
    }),
  }),
  route({
    ...reads,
    method: 'get',
    path: '/webhooks/events',
    operation_id: 'listSystemEvents',
    summary: 'List system events',
    description: 'Returns the changes of the environment, newest first, each with the body of its webhooks.',
    query: SystemEventFilter,
    answer: SystemEventListAnswer,
    handle: ({ query }, context) => findEvents(query, context),
  }),
  route({
    ...reads,
    method: 'post',
    path: '/webhooks/events/search',
    operation_id: 'querySystemEvent',
    summary: 'Search system events',
    description: 'Returns the changes of the environment that meet the conditions in the body, newest first.',
    body: SystemEventFilter,
    answer: SystemEventListAnswer,
    handle: ({ body }, context) => findEvents(body, context),
  }),
  route({
    ...reads,
    method: 'get',
    path: '/webhooks/events/:id',
    operation_id: 'getSystemEvent',
    summary: 'Get a system event',
    description: 'Returns the event with the body of its webhooks.',
    params: idParams,
    answer: SystemEventAnswer,
    handle: ({ params }, { scope, services }) =>
      SystemEventModel.fetch(scope, params.id, { database: services.postgres }),
  }),
];

const deliveryRoutes: Route[] = [
  route({
    ...reads,
    method: 'get',
    path: '/webhooks/deliveries',
    operation_id: 'listWebhookDeliveries',
    summary: 'List webhook deliveries',
    description: 'Returns one delivery per event and subscribed endpoint, with its status, newest first.',
    query: DeliveryFilter,
    answer: DeliveryListAnswer,
    handle: ({ query }, context) => findDeliveries(query, context),
  }),
  route({
    ...reads,
    method: 'post',
    path: '/webhooks/deliveries/search',
    operation_id: 'queryWebhookDelivery',
    summary: 'Search webhook deliveries',
    description: 'Returns the deliveries that meet the conditions in the body, newest first.',
    body: DeliveryFilter,
    answer: DeliveryListAnswer,
    handle: ({ body }, context) => findDeliveries(body, context),
  }),
  route({
    ...reads,
    method: 'get',
    path: '/webhooks/deliveries/:id',
    operation_id: 'getWebhookDelivery',
    summary: 'Get a delivery with its attempts',
    description: 'Returns the sent body, and the answer or the error of each attempt.',
    params: idParams,
    answer: DeliveryDetailAnswer,
    handle: async ({ params }, { scope, services }) => {
      const database = services.postgres;
      const delivery = await WebhookDeliveryModel.fetch(scope, params.id, { database });
      const { payload } = await SystemEventModel.fetch(scope, delivery.system_event_id, { database });
      const attempts = await WebhookAttemptModel.in(scope, database)
        .where('delivery_id', delivery.id)
        .orderBy(['attempt', 'id']);
      return { ...delivery, body: payload, attempts };
    },
  }),
  route({
    ...retries,
    method: 'post',
    path: '/webhooks/:id/retry',
    operation_id: 'retryWebhook',
    summary: 'Send a system event again',
    description: `${RETRY} The id in the path names the event.`,
    params: idParams,
    idempotency: { replay: async (done, { params }) => showResent(params.id, done.madeAll('webhook_delivery').length) },
    handle: ({ params }, context) => retry(params.id, context),
  }),
  route({
    ...retries,
    method: 'post',
    path: '/webhooks/retry',
    operation_id: 'retryOutboundWebhook',
    summary: 'Send an event again, by body',
    description: RETRY,
    body: RetryWebhook,
    idempotency: {
      replay: async (done, { body }) => showResent(body.system_event_id, done.madeAll('webhook_delivery').length),
    },
    handle: ({ body }, context) => retry(body.system_event_id, context),
  }),
  route({
    ...reads,
    method: 'get',
    path: '/webhooks/dashboard',
    operation_id: 'getWebhookDashboard',
    summary: 'Locate the webhook endpoints',
    description:
      'Reports whether endpoints are managed here, at `/webhooks/endpoints`, or by Svix. For Svix it returns a ' +
      'link to its page, which is read-only if the caller may not write.',
    answer: DashboardAnswer,
    handle: async (_, { scope, principal, services }) => {
      // The link grants access to anybody who has it, so it is read-only if the caller may not write.
      const may_change = canWrite(principal, 'webhook');
      const shown = await createWebhookBackend(services.config).dashboard?.(scope, { may_change });
      return shown ? { svix_enabled: true, ...shown } : { svix_enabled: false };
    },
  }),
];

export const webhookRoutes: Route[] = [...endpointRoutes, ...eventRoutes, ...deliveryRoutes];

function findEvents(input: SystemEventFilter, { scope, services }: Context) {
  const query = narrow(SystemEventModel.in(scope, services.postgres), [
    ['event_name', input.event_names?.map(parseEventName)],
    ['entity_type', input.entity_type],
    ['entity_id', input.entity_ids],
  ]);
  return fetchPage(query, input, systemEventGrammar);
}

function findDeliveries(input: DeliveryFilter, { scope, services }: Context) {
  const query = narrow(WebhookDeliveryModel.in(scope, services.postgres), [
    ['endpoint_id', input.endpoint_ids],
    ['system_event_id', input.system_event_ids],
    ['entity_id', input.entity_ids],
    ['event_name', input.event_names?.map(parseEventName)],
    ['delivery_status', input.delivery_status],
  ]);
  return fetchPage(query, input, deliveryGrammar);
}

async function retry(id: string, context: Context) {
  const { has_targets } = createWebhookBackend(context.services.config);
  const count = await retryEvent(context.services, context.scope, { id, has_targets, author: toAuthor(context) });
  return showResent(id, count);
}

function showResent(id: string, count: number) {
  return { success: true, message: `told again to ${count} endpoint${count === 1 ? '' : 's'}`, system_event_id: id };
}
