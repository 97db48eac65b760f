/** GET /events/dead-letters and POST /events/dead-letters/replay: our addition to the interface. */
import { z } from 'zod';
import { REPLAYED_AT_ONCE_MAX, replayDeadLetters } from '../../../actions/metering/events/replay-dead-letters.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { wholeNumber } from '../../../core/foundation/record.ts';
import { formatUs } from '../../../core/foundation/time/instant.ts';
import { countDeadLetters, findDeadLetters } from '../../../storage/events/dead-letters.ts';
import { Pagination } from '../../http/list.ts';
import { type Route, route } from '../../http/route.ts';
import { eventMetrics } from './metrics.ts';
import { cursorField, formatPlaceCursor, parsePlaceCursor } from './place-cursor.ts';

const tag = 'Events';

export const DeadLetterAnswer = z
  .object({
    id: z.string(),
    event_id: z
      .string()
      .nullable()
      .meta({ description: 'Event id that the producer received; null if none can be read.' }),
    reason: z.string().meta({ description: 'Reason why the input could not become an event.' }),
    received_at: z.string().meta({ description: 'Time of receipt.' }),
    body: z.string().meta({ description: 'Bytes as received.' }),
    replayed_at: z.string().nullable().meta({ description: 'Time of the replay; null before.' }),
  })
  .meta({ id: 'DeadLetter' });

const ReplayRequest = z
  .object({
    ids: z
      .array(z.string().min(1))
      .min(1)
      .max(REPLAYED_AT_ONCE_MAX)
      .optional()
      .meta({ description: `Ids of dead letters, at most ${REPLAYED_AT_ONCE_MAX}.` }),
    all: z
      .boolean()
      .optional()
      .meta({
        description: `True for all dead letters that were not replayed yet, at most ${REPLAYED_AT_ONCE_MAX} per request.`,
      }),
  })
  .meta({ id: 'ReplayDeadLettersRequest', example: { all: true } });

export const ReplayAnswer = z
  .object({
    verdicts: z
      .array(
        z.object({
          id: z.string(),
          event_id: z.string().nullable().meta({ description: 'Id of the event; null if none can be read.' }),
          verdict: z
            .enum(['replayed', 'refused', 'replayed_before', 'unknown'])
            .meta({ description: 'Outcome. Only `replayed` means that it was sent again.' }),
          message: z.string().nullable().meta({ description: 'Explanation of the verdict; null for `replayed`.' }),
        }),
      )
      .meta({ description: 'One verdict per requested dead letter.' }),
  })
  .meta({ id: 'ReplayDeadLettersResponse' });

const page = {
  limit: wholeNumber
    .pipe(z.int().min(1).max(1000))
    .default(50)
    .meta({ description: 'Maximum number of dead letters per page, 1 to 1,000. Default: 50.' }),
  offset: wholeNumber
    .pipe(z.int().min(0))
    .default(0)
    .meta({ description: 'Number of dead letters to skip before the page. Default: 0.' }),
  cursor: cursorField,
};

function parsePosition(id: string) {
  const [partition, offset, position] = id.split('-').map(Number) as [number, number, number];
  return { partition, offset, position };
}

export const deadLetterRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/dead-letters',
    operation_id: 'listDeadLetters',
    summary: 'List dead letters',
    description:
      'Returns accepted input that could not become an event, newest first, with its original bytes and the reason. `replayed_at` is the time of its replay.',
    tag,
    access: 'event:read',
    query: z.object(page),
    success: 200,
    answer: z
      .object({
        items: z.array(DeadLetterAnswer).meta({ description: 'Page of the dead letters, newest first.' }),
        pagination: Pagination.meta({ description: 'Position of the page in the list.' }),
      })
      .meta({ id: 'ListDeadLettersResponse' }),
    async handle({ query }, { services, scope }) {
      const { cursor, limit, offset } = query;
      if (cursor !== undefined && offset > 0) throw invalid('offset', 'must not be sent with a cursor');
      const after = parsePlaceCursor(cursor);
      const place = after && { ...after, id: `${after.partition}-${after.offset}-${after.position}` };
      // One more is read, to know whether another page follows.
      const letters = await findDeadLetters(services, scope, { ids: null, limit: limit + 1, offset, after: place });
      const last = letters.length > limit ? letters[limit - 1]! : null;
      const items = letters.slice(0, limit).map(({ received_at_us, event_id, ...letter }) => ({
        ...letter,
        event_id: event_id === '' ? null : event_id,
        received_at: formatUs(received_at_us),
      }));
      const next_cursor = last && formatPlaceCursor({ ...last, ...parsePosition(last.id), meter_id: '' });
      return { items, pagination: { total: await countDeadLetters(services, scope), limit, offset, next_cursor } };
    },
  }),
  route({
    method: 'post',
    path: '/events/dead-letters/replay',
    operation_id: 'replayDeadLetters',
    summary: 'Replay dead letters',
    description:
      'Sends the dead letters in `ids`, or with `all` those that were not replayed yet, through validation and the log again. Each is checked as if it were sent now, and replayed at most once. The answer has a verdict for each. Exactly one of `ids` and `all` is required.',
    tag,
    access: 'event:correct',
    body: ReplayRequest,
    success: 202,
    answer: ReplayAnswer,
    idempotency: 'same',
    async handle({ body }, { services, scope, principal, received_at: now }) {
      if ((body.ids === undefined) === (body.all !== true)) throw invalid('ids', 'either ids or all must be given');
      const input = { ids: body.ids ?? null, user_id: principal.user_id, now };
      const verdicts = await replayDeadLetters(services, scope, input);
      eventMetrics.replays(verdicts);
      return { verdicts };
    },
  }),
];
