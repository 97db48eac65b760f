/** Requests and answers of webhooks that providers send. */
import { z } from 'zod';
import { anyCase } from '../../../core/foundation/record.ts';
import { PROVIDER_EVENT_STATES, providerEventShape } from '../../../core/platform/integration/provider-event.ts';
import { type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';

export const WebhookTarget = z.object({
  tenant_id: z.string().min(1).meta({ description: 'Id of the tenant.' }),
  environment_id: z.string().min(1).meta({ description: 'Id of the environment.' }),
});

/** The body is parsed from its bytes, because the signature covers the bytes. */
export const ProviderWebhook = z
  .record(z.string(), z.unknown())
  .meta({ id: 'ProviderWebhook', example: { id: 'evt_1', type: 'invoice.paid', data: { object: { id: 'in_1' } } } });

export const ProviderEventAnswer = providerEventShape.meta({ id: 'ProviderEventResponse' });
export const ProviderEventListAnswer = listAnswer(ProviderEventAnswer, 'ListProviderEventsResponse');

export const ProviderEventFilter = listShape({
  connection_ids: matchAny('connections'),
  event_types: matchAny('names of events at the provider'),
  event_state: anyCase(PROVIDER_EVENT_STATES).optional().meta({ description: 'State of the event.' }),
}).meta({ id: 'ProviderEventFilter' });
export type ProviderEventFilter = z.output<typeof ProviderEventFilter>;

export const providerEventGrammar: ListGrammar = {
  columns: {
    id: 'string',
    connection_id: 'string',
    provider_event_id: 'string',
    event_type: 'string',
    event_state: 'string',
    attempt_count: 'number',
    next_attempt_at: 'date',
    created_at: 'date',
  },
};
