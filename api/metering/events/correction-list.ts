/** GET /events/corrections, the corrections of all events: our addition to the interface. */
import { z } from 'zod';
import { canRead } from '../../../core/foundation/access/role.ts';
import { anyCase, orNull, timestampText } from '../../../core/foundation/record.ts';
import { formatUs, toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import { checkRange } from '../../../core/foundation/time/range.ts';
import { CORRECTION_ACTIONS, CORRECTION_STATES } from '../../../core/metering/correction.ts';
import {
  FILTERED_CORRECTIONS_MAX,
  listCorrectionIds,
  loadCorrectedSubjects,
} from '../../../storage/events/corrections.ts';
import { loadPage, narrow } from '../../../storage/models/foundation/page.ts';
import { EventCorrectionModel } from '../../../storage/models/metering/event-correction.ts';
import { PIPELINE } from '../../../storage/progress/corrections.ts';
import { ActorAnswer, loadActors } from '../../foundation/actors.ts';
import { listAnswer, listShape } from '../../http/list.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { correctionFields } from './corrections.ts';

const ListedCorrection = z
  .object({
    id: z.string(),
    event_id: z.string(),
    ...correctionFields,
    actor: ActorAnswer.nullable().meta({
      description:
        'Author with name and email; null without the permission to read users, or if `requested_by` is no user of the tenant.',
    }),
    event_name: z.string().nullable().meta({
      description:
        'Name of the event after the correction, or before its void; null until the correction takes effect.',
    }),
    external_customer_id: z.string().nullable().meta({
      description: 'External id of the customer, as for `event_name`; null until the correction takes effect.',
    }),
    timestamp: timestampText.nullable().meta({
      description: 'Time of the event, as for `event_name`; null until the correction takes effect.',
    }),
  })
  .meta({ id: 'ListedEventCorrection' });

export const ListedCorrectionsAnswer = listAnswer(ListedCorrection, 'ListEventsCorrectionsResponse');

const FILTER_BOUND = `Finds only corrections that took effect, at most the newest ${FILTERED_CORRECTIONS_MAX.toLocaleString('en')}.`;
const { limit, offset, cursor } = listShape({}).shape;
const CorrectionsQuery = z.object({
  event_id: orNull(z.string()).meta({ description: 'Id of the event.' }),
  event_name: orNull(z.string().trim()).meta({
    description: `Name of the event after the correction. ${FILTER_BOUND}`,
  }),
  external_customer_id: orNull(z.string()).meta({
    description: `External id of the customer after the correction. ${FILTER_BOUND}`,
  }),
  action: orNull(anyCase(CORRECTION_ACTIONS)).meta({ description: 'Kind of the correction. Default: all.' }),
  state: orNull(anyCase(CORRECTION_STATES)).meta({ description: 'State to match. Default: all.' }),
  start_time: timestampText.optional().meta({ description: 'Earliest time of the requests, inclusive.' }),
  end_time: timestampText.optional().meta({ description: 'Exclusive end of the times of the request.' }),
  limit: limit.meta({ description: 'Maximum number of corrections per page, 1 to 1,000. Default: 50.' }),
  offset,
  cursor,
});

export const correctionListRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/corrections',
    operation_id: 'listCorrections',
    summary: 'List corrections of all events',
    description:
      'Returns the voids and replacements of events, newest first, with author, time, reason and state. A correction must match all filters.',
    tag: 'Events',
    access: 'event:read',
    query: CorrectionsQuery,
    success: 200,
    answer: ListedCorrectionsAnswer,
    handle: async ({ query }, context) => {
      const { start_time, end_time, event_id, event_name, external_customer_id, action, state, ...place } = query;
      if (start_time && end_time)
        checkRange({ start_us: toUs(toInstant(start_time)), end_us: toUs(toInstant(end_time)) });
      const { scope, services } = context;
      const wanted = narrow(EventCorrectionModel.in(scope, services.postgres), [
        ['event_id', event_id],
        ['action', action],
        ['state', state],
        ['requested_at', '>=', start_time],
        ['requested_at', '<', end_time],
      ]);
      if (event_name !== null || external_customer_id !== null) {
        const ids = await listCorrectionIds(services.clickhouse, scope, { event_name, external_customer_id });
        void wanted.whereRaw('id = any(?::bigint[])', [ids]);
      }
      const page = await loadPage(wanted, { ...place, order: NEWEST_REQUEST_FIRST });
      return { ...page, items: await showCorrections(page.items, context) };
    },
  }),
];

/** Not by the id alone: Postgres would then walk the corrections of all tenants in its order. */
const NEWEST_REQUEST_FIRST = [
  { field: 'requested_at', direction: 'desc' },
  { field: 'id', direction: 'desc' },
] as const;

async function showCorrections(corrections: readonly EventCorrectionModel[], { scope, services, principal }: Context) {
  const authors = corrections.map(({ requested_by }) => requested_by);
  const [subjects, actors] = await Promise.all([
    loadCorrectedSubjects(services.clickhouse, scope, corrections),
    canRead(principal, 'user')
      ? loadActors(authors, { scope, system_id: PIPELINE, database: services.postgres })
      : new Map<string, ActorAnswer>(),
  ]);
  return corrections.map(({ id, event_id, action, reason, requested_by, requested_at, state, applied_at }) => {
    const subject = subjects.get(id);
    return {
      ...{ id, event_id, action, reason, requested_by, requested_at, state, applied_at },
      actor: actors.get(requested_by) ?? null,
      event_name: subject?.event_name ?? null,
      external_customer_id: subject?.external_customer_id ?? null,
      timestamp: subject ? formatUs(subject.timestamp_us) : null,
    };
  });
}
