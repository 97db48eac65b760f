/** Sends a test event to one endpoint, whatever its filter, so that its receiver can be checked. */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { WebhookDeliveryModel } from '../../../storage/models/delivery/webhook-delivery.ts';
import { SystemEventModel } from '../../../storage/models/foundation/system-event.ts';
import { emit } from '../../foundation/emit.ts';
import { lockEndpoint } from './change-endpoint.ts';
import { addDeliveries } from './dispatch-events.ts';

export async function testEndpoint(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<WebhookDeliveryModel> {
  return postgres.transaction(async (transaction) => {
    const endpoint = await lockEndpoint(scope, id, transaction);
    if (endpoint.endpoint_status !== 'enabled') throw notAllowed('the endpoint is disabled: nothing is sent to it');
    const event_id = await emit(transaction, 'webhook_endpoint.test', { record: endpoint, by: author });
    const event = await SystemEventModel.fetch(scope, event_id, { database: transaction });
    // The test event is marked as dispatched, so that no other endpoint receives it.
    const dispatched_at = author.now.toISOString();
    await SystemEventModel.change(event, { dispatched_at }, { by: author, database: transaction });
    const [delivery] = await addDeliveries(transaction, scope, {
      wanted: [{ event, endpoint_ids: [id] }],
      now: author.now,
    });
    return delivery!;
  });
}
