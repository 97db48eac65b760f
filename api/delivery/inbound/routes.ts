/** Webhooks of providers. They have no API key; a signature with the secret of the connection authenticates them. */
import { z } from 'zod';
import {
  describeWebhooks,
  listReceivedProviders,
  receiveWebhook,
} from '../../../actions/delivery/inbound/receive-webhook.ts';
import { retryProviderEvent } from '../../../actions/delivery/inbound/retry-event.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import { runAs } from '../../../storage/foundation/request-context.ts';
import { ProviderEventModel } from '../../../storage/models/delivery/provider-event.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import { inboundMetrics } from './metrics.ts';
import {
  ProviderEventAnswer,
  ProviderEventFilter,
  ProviderEventListAnswer,
  ProviderWebhook,
  providerEventGrammar,
  WebhookTarget,
} from './schema.ts';

const tag = 'Integrations';
/** Maximum size of a body in bytes; webhooks of providers are far smaller. */
const BODY_LIMIT = 1024 * 1024;

export const inboundWebhookRoutes: Route[] = [
  ...listReceivedProviders().map(createWebhookRoute),
  route({
    method: 'get',
    path: '/webhooks/inbound',
    operation_id: 'listInboundWebhooks',
    summary: 'List events of providers',
    description:
      'Returns the events that providers have sent by webhooks, newest first, with the state of their effect.',
    tag,
    access: 'integration:read',
    query: ProviderEventFilter,
    success: 200,
    answer: ProviderEventListAnswer,
    handle: ({ query: input }, { scope, services }) => {
      const query = narrow(ProviderEventModel.in(scope, services.postgres), [
        ['connection_id', input.connection_ids],
        ['event_type', input.event_types],
        ['event_state', input.event_state],
      ]);
      return fetchPage(query, input, providerEventGrammar);
    },
  }),
  route({
    method: 'post',
    path: '/webhooks/inbound/:id/retry',
    operation_id: 'retryInboundWebhook',
    summary: 'Process a provider event again',
    description:
      'Processes an event of a provider again that failed, was ignored or waits. Refused for an event that was processed, or whose type has no effect.',
    tag,
    access: 'integration:write',
    params: idParams,
    success: 202,
    answer: ProviderEventAnswer,
    idempotency: 'same',
    handle: ({ params }, context) =>
      retryProviderEvent(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];

function createWebhookRoute(provider_type: string): Route {
  inboundMetrics.known(provider_type);
  const { signature_headers, webhook_query, webhook_body_type, wants_empty_answer } = describeWebhooks(provider_type);
  const name = provider_type.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
  return route({
    method: 'post',
    path: `/webhooks/${provider_type}/:tenant_id/:environment_id`,
    operation_id: `handle${name}Webhook`,
    summary: `Receive a webhook of ${name}`,
    description:
      'Stores the events of a webhook, signed with the webhook secret of the connection; they take effect a moment later. Also served without /v1. A ' +
      'wrong signature, and an environment without a connection, are answered with 401.',
    tag,
    access: 'public',
    signed: signature_headers,
    raw_body: true,
    ...(webhook_body_type === undefined ? {} : takeForms(webhook_body_type)),
    ...(webhook_query === undefined ? {} : { query: webhook_query }),
    body_limit: BODY_LIMIT,
    params: WebhookTarget,
    body: ProviderWebhook,
    success: 200,
    ...(wants_empty_answer ? {} : { answer: MessageAnswer }),
    handle: async ({ params: scope }, context) => {
      const { request_id, response } = context;
      const requestContext = { scope, user_id: provider_type, secret_id: null, request_id };
      const receiving = runAs(requestContext, () =>
        inboundMetrics.measure(provider_type, () => receive(provider_type, scope, context)),
      );
      if (wants_empty_answer) return endWithStatus(response, receiving);
      const count = await receiving;
      return { message: count === 1 ? '1 event stored' : `${count} events stored` };
    },
  });
}

function takeForms(type: string) {
  return { takes_bytes: type, also_takes: { [type]: { schema: ProviderWebhook, example: {} } } };
}

/** Answers without a body: 200, or 401 after a wrong signature. Other failures are answered as usual. */
async function endWithStatus(response: Context['response'], receiving: Promise<unknown>): Promise<void> {
  try {
    await receiving;
    response.status(200).end();
  } catch (error) {
    if (!(error instanceof FarthingError) || error.http_status_code !== 401) throw error;
    response.status(401).end();
  }
}

function receive(
  provider_type: string,
  scope: z.output<typeof WebhookTarget>,
  { services, request, received_at, log }: Context,
): Promise<number> {
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
  const onUnreadable = (connection_id: string) => log.error({ connection_id }, 'the credentials cannot be decrypted');
  const { method, originalUrl, protocol, host } = request;
  const url = `${services.config.PUBLIC_URL ?? `${protocol}://${host}`}${originalUrl}`;
  const webhook = { headers, body: request.body as Buffer, now: received_at, method, url };
  return receiveWebhook(services, scope, { provider_type, webhook, settings: services.config, onUnreadable });
}
