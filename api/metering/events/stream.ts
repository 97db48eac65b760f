/** GET /events/stream: our addition to the interface. */
import { z } from 'zod';
import { errorRecord } from '../../../core/foundation/error.ts';
import { orNull } from '../../../core/foundation/record.ts';
import { getStopSignal } from '../../../process/http-server.ts';
import { authenticate } from '../../http/auth.ts';
import { toFarthingError } from '../../http/errors.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { type EventsMessage, listenToEvents } from './event-feeds.ts';

const ACCESS = 'event:read';
/** Interval of the comments that detect a lost connection. The access of the caller is checked again as often. */
const HEARTBEAT_MS = 15_000;
/** Number of unsent bytes from which messages are skipped, because the client does not read. */
const UNSENT_BYTES_MAX = 256 * 1024;
/** Time after which a browser connects again. */
const RETRY_MS = 2_000;

export const streamRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/stream',
    operation_id: 'streamEvents',
    summary: 'Stream new events',
    description:
      'Sends new events as server-sent events, at most one message per second. A message `events` has `items`, a sample of at most 20 events, each with its `status` (`counted`, `unusable` or `unmatched`); `passed_over`, the number of other new events; and `rate`, the number per second. A message `error` has the error record and ends the stream. The stream also ends with the access of the caller, and when the server stops; clients connect again. Limits per environment: 200 streams, 20 different filters: [The stream of events](/docs/rules/events.md#the-stream-of-events).',
    tag: 'Events',
    access: ACCESS,
    query: z.object({
      event_name: orNull(z.string().trim()).meta({ description: 'Name of the events. Default: all.' }),
      external_customer_id: orNull(z.string()).meta({ description: 'External id of the customer. Default: all.' }),
    }),
    success: 200,
    file_type: 'text/event-stream',
    handle: async ({ query: filter }, context) => openStream(filter, context),
  }),
];

type StreamFilter = { readonly event_name: string | null; readonly external_customer_id: string | null };

function openStream(filter: StreamFilter, context: Context): void {
  const { services, scope, request, response } = context;
  const send = (event: string, data: string) => void response.write(`event: ${event}\n${toDataLines(data)}\n`);
  const isRead = () => response.writableLength <= UNSENT_BYTES_MAX;
  const stop = listenToEvents(services, scope, {
    filter,
    send: (message) => {
      if (!isRead()) return false;
      send('events', formatMessage(message));
      return true;
    },
    fail: (error) => {
      send('error', JSON.stringify(errorRecord(toFarthingError(error))));
      end();
    },
  });
  const stopping = getStopSignal(request);
  const heartbeat = setInterval(() => {
    // A client that has read nothing for so long, or not the end of its stream, is gone.
    if (!isRead() || response.writableEnded) return void response.destroy();
    response.write(':\n\n');
    checkAccess(context).catch(end);
  }, HEARTBEAT_MS).unref();
  /** An ended stream is closed once the client has read the rest, and must not be written to until then. */
  const end = () => {
    stop();
    response.end();
  };
  stopping?.addEventListener('abort', end, { once: true });
  response.once('close', () => {
    stop();
    clearInterval(heartbeat);
    stopping?.removeEventListener('abort', end);
  });
  response.status(200).set({ 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' });
  response.write(`retry: ${RETRY_MS}\n\n`);
  if (stopping?.aborted || response.destroyed) end();
}

/** Throws if the caller may no longer read the events: the key was revoked, the user has other roles, or the tenant is suspended. */
async function checkAccess({ request, services }: Context): Promise<void> {
  await authenticate(request, ACCESS, services, services.clock());
}

function formatMessage({ items, passed_over, rate }: EventsMessage): string {
  return `{"items":[${items}],"passed_over":${passed_over},"rate":"${rate}"}`;
}

/** The properties of an event are its original text, which may have line breaks. */
function toDataLines(text: string): string {
  return text
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('');
}
