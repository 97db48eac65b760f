/** Shapes of the webhook records, and the words and colours of their states. */
import type { components } from '../../client/openapi.d.ts';
import type { Tone } from '../../components/tone.ts';

export type EndpointRecord = components['schemas']['WebhookEndpointResponse'];
export type DeliveryRecord = components['schemas']['WebhookDeliveryResponse'];
export type WebhookDeliveryDetail = components['schemas']['WebhookDeliveryDetailResponse'];

export type EndpointState = 'enabled' | 'failing' | 'disabled';

/** An enabled endpoint fails from its first failure to its next success. */
export function deriveEndpointState(
  endpoint: Pick<EndpointRecord, 'endpoint_status' | 'failing_since'>,
): EndpointState {
  if (endpoint.endpoint_status === 'disabled') return 'disabled';
  return endpoint.failing_since === null ? 'enabled' : 'failing';
}

export const ENDPOINT_TONES: Record<EndpointState, Tone> = { enabled: 'ok', failing: 'bad', disabled: 'plain' };
export const DELIVERY_TONES: Record<DeliveryRecord['delivery_status'], Tone> = {
  pending: 'warn',
  delivered: 'ok',
  failed: 'bad',
};

/** Names by their first part, such as `invoice`, in the order of the list. */
export function groupEventNames(event_names: readonly string[]): { group: string; event_names: string[] }[] {
  const groups = new Map<string, string[]>();
  for (const event_name of event_names) {
    const group = event_name.slice(0, event_name.indexOf('.'));
    const members = groups.get(group);
    if (members) members.push(event_name);
    else groups.set(group, [event_name]);
  }
  return [...groups].map(([group, members]) => ({ group, event_names: members }));
}

/** A body as the receiver has answered it: JSON is indented, any other text stays. */
export function formatAnswer(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
