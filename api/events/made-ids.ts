/**
 * Ids of events that came without one. Those of a request with an Idempotency-Key follow from the key and its bytes, so that it may be
 * sent again after a crash or a 503 and counts once (docs/rules/identity.md, "Events without an id").
 */
import { createHash } from 'node:crypto';
import type { MakeId } from '../../actions/events/append-events.ts';
import { formatId } from '../../core/id.ts';
import { identityOfRequest } from '../http/idempotency.ts';
import type { Context } from '../http/route.ts';

const TIME_BYTES = 6;

/** By the place of the event in the body; undefined where each is new whenever it comes. */
export function madeIds(context: Context): MakeId | undefined {
  const request = identityOfRequest(context);
  if (request === null) return undefined;
  return (index) => {
    const hash = createHash('sha256').update(`${request}\n${index}`).digest();
    // No time is in it, because it is another one when the request comes again.
    return formatId('event', hash.readUIntBE(0, TIME_BYTES), hash.subarray(TIME_BYTES));
  };
}
