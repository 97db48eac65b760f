/**
 * Ids of events that came without one. Those of a request with an Idempotency-Key follow from the key and its bytes, so that it may be
 * sent again after a crash or a 503 and counts once (docs/rules/identity.md, "Events without an id").
 */
import type { MakeId } from '../../actions/events/append-events.ts';
import { deriveId, requestIdentity } from '../http/idempotency.ts';
import type { Context } from '../http/route.ts';

/** By the place of the event in the body; undefined where each is new whenever it comes. */
export function buildEventIdMaker(context: Context): MakeId | undefined {
  const request = requestIdentity(context);
  return request === null ? undefined : (index) => deriveId('event', `${request}\n${index}`);
}
