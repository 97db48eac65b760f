/**
 * Generated ids of events. With an Idempotency-Key they are derived from the key and the bytes of the request, so that the request
 * may be repeated after a crash or a 503 and counts once (docs/rules/identity.md, "Events without an id").
 */
import type { GenerateId } from '../../../actions/metering/events/append-events.ts';
import { deriveId, requestIdentity } from '../../http/idempotency.ts';
import type { Context } from '../../http/route.ts';

/** Derives an id from the index of the event in the body; undefined if every event gets a new id. */
export function buildEventIdGenerator(context: Context): GenerateId | undefined {
  const request = requestIdentity(context);
  return request === null ? undefined : (index) => deriveId('event', `${request}\n${index}`);
}
