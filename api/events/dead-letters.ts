/** GET /events/dead-letters and POST /events/dead-letters/replay: an addition of ours to the interface. */
import { z } from 'zod';
import { REPLAYED_AT_ONCE_MAX, replayDeadLetters } from '../../actions/events/replay-dead-letters.ts';
import { invalid } from '../../core/error.ts';
import { wholeNumber } from '../../core/record.ts';
import { formatUs } from '../../core/time/instant.ts';
import { countDeadLetters, findDeadLetters } from '../../storage/events/dead-letters.ts';
import { Pagination } from '../http/list.ts';
import { type Route, route } from '../http/route.ts';
import { eventMetrics } from './metrics.ts';

const tag = 'Events';

const DeadLetterAnswer = z
  .object({
    id: z.string(),
    event_id: z.string().nullable().meta({ description: 'The id that its producer was told, where one can be read.' }),
    reason: z.string().meta({ description: 'Why it could not become an event.' }),
    received_at: z.string().meta({ description: 'When it came in.' }),
    body: z.string().meta({ description: 'The bytes as they came.' }),
    replayed_at: z.string().nullable().meta({ description: 'When it was sent once more; null before.' }),
  })
  .meta({ id: 'DeadLetter' });

const ReplayRequest = z
  .object({
    ids: z
      .array(z.string().min(1))
      .min(1)
      .max(REPLAYED_AT_ONCE_MAX)
      .optional()
      .meta({ description: `These, at most ${REPLAYED_AT_ONCE_MAX}.` }),
    all: z
      .boolean()
      .optional()
      .meta({ description: `All that were not replayed yet, ${REPLAYED_AT_ONCE_MAX} at a time.` }),
  })
  .meta({ id: 'ReplayDeadLettersRequest', example: { all: true } });

const ReplayAnswer = z
  .object({
    verdicts: z
      .array(
        z.object({
          id: z.string(),
          event_id: z.string().nullable().meta({ description: 'The id of the event; null where none can be read.' }),
          verdict: z
            .enum(['replayed', 'refused', 'replayed_before', 'unknown'])
            .meta({ description: '`replayed` alone was sent once more.' }),
          message: z.string().nullable().meta({ description: 'Why it was refused; else null.' }),
        }),
      )
      .meta({ description: 'One for each dead letter that was asked for.' }),
  })
  .meta({ id: 'ReplayDeadLettersResponse' });

const page = {
  limit: wholeNumber.pipe(z.int().min(1).max(1000)).default(50).meta({ description: 'How many a page has at most.' }),
  offset: wholeNumber.pipe(z.int().min(0)).default(0).meta({ description: 'How many to leave out before the page.' }),
};

export const deadLetterRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/dead-letters',
    operation_id: 'listDeadLetters',
    summary: 'What was accepted and could not become an event, with the reason, newest first',
    description: 'Each with its bytes as they came; `replayed_at` says when it was sent once more.',
    tag,
    access: 'event:read',
    query: z.object(page),
    success: 200,
    answer: z
      .object({
        items: z.array(DeadLetterAnswer).meta({ description: 'A page of them, newest first.' }),
        pagination: Pagination.meta({ description: 'Where the page stands among them.' }),
      })
      .meta({ id: 'ListDeadLettersResponse' }),
    async handle({ query }, { services, scope }) {
      const letters = await findDeadLetters(services, scope, { ids: null, ...query });
      const items = letters.map(({ received_at_us, event_id, ...letter }) => ({
        ...letter,
        event_id: event_id === '' ? null : event_id,
        received_at: formatUs(received_at_us),
      }));
      return { items, pagination: { total: await countDeadLetters(services, scope), ...query } };
    },
  }),
  route({
    method: 'post',
    path: '/events/dead-letters/replay',
    operation_id: 'replayDeadLetters',
    summary: 'Send dead letters through validation and the log once more',
    description:
      'Those named by `ids`, or with `all` those that were not replayed yet. Each is judged as if it were sent now, and is replayed once at most; the answer says of each what became of it.',
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
