/** POST /events/{id}/void and /events/{id}/replace, and what was corrected: an addition of ours to the interface. */

import { z } from 'zod';
import { requestCorrection } from '../../actions/events/request-correction.ts';
import { invalid } from '../../core/error.ts';
import { findEventFault, findKeyFault } from '../../core/event/accept.ts';
import { checkBodySize } from '../../core/event/body-size.ts';
import { parseJson } from '../../core/json/parse.ts';
import { properties } from '../../core/metering/event-text.ts';
import { type Correction, listCorrections } from '../../storage/progress/corrections.ts';
import { checkKeys } from '../http/ignored-keys.ts';
import { type Context, idParams, type Route, route } from '../http/route.ts';
import { getFairShare } from './fair-share.ts';
import { IngestEventRequest } from './schema.ts';

const tag = 'Events';
const reason = z.string().trim().min(1).max(1000).meta({ description: 'Why; kept with who asked for it and when.' });

const VoidEventRequest = z.object({ reason }).meta({ id: 'VoidEventRequest', example: { reason: 'sent by a test' } });
const ReplaceEventRequest = z
  .object({
    event: IngestEventRequest.meta({ description: 'The whole event as it should have been.' }),
    reason,
  })
  .meta({
    id: 'ReplaceEventRequest',
    example: {
      event: {
        event_name: 'api_call',
        external_customer_id: 'acme',
        timestamp: '2026-01-31T10:00:00Z',
        properties: { tokens: 64 },
      },
      reason: 'counted twice',
    },
  });

/** Of a correction, wherever it is shown. */
export const correctionFields = {
  action: z.enum(['void', 'replace']).meta({ description: 'Taken out, or put another content in its place.' }),
  reason: z.string().meta({ description: 'Why, as it was stated.' }),
  requested_by: z
    .string()
    .meta({ description: 'The user who asked for it; `pipeline` where the stores refused the event.' }),
  requested_at: z.string().meta({ description: 'When it was asked for.' }),
  state: z
    .enum(['requested', 'applied', 'unknown_event'])
    .meta({ description: '`applied` when usage follows it; `unknown_event` when no event of this id was counted.' }),
  applied_at: z.string().nullable().meta({ description: 'When it had its effect; null before.' }),
};

const CorrectionAnswer = z
  .object({
    id: z.string(),
    event_id: z.string(),
    ...correctionFields,
  })
  .meta({ id: 'EventCorrection' });

export const correctionRoutes: Route[] = [
  route({
    method: 'post',
    path: '/events/:id/void',
    operation_id: 'voidEvent',
    summary: 'Void an accepted event: usage and open drafts follow, final invoices stay',
    description:
      'It is taken out of all usage, and what was charged for it comes off the next invoice. The answer says that it is asked for, and `GET /events/{id}/corrections` when it has its effect. A voided event cannot be replaced any more.',
    tag,
    access: 'event:correct',
    params: idParams,
    body: VoidEventRequest,
    success: 202,
    answer: CorrectionAnswer,
    idempotency: 'same',
    handle: ({ params, body }, context) => correct(context, { ...params, ...body, action: 'void', replacement: null }),
  }),
  route({
    method: 'post',
    path: '/events/:id/replace',
    operation_id: 'replaceEvent',
    summary: 'Replace an accepted event: usage and open drafts follow, final invoices stay',
    description:
      'Another content is put in its place, under its id; the difference goes to the next invoice where its own is final. The answer says that it is asked for, and `GET /events/{id}/corrections` when it has its effect.',
    tag,
    access: 'event:correct',
    params: idParams,
    body: ReplaceEventRequest,
    raw_body: true,
    success: 202,
    answer: CorrectionAnswer,
    idempotency: 'same',
    handle: ({ params }, context) =>
      correct(context, { ...params, ...replacementIn(context, params.id), action: 'replace' }),
  }),
  route({
    method: 'get',
    path: '/events/:id/corrections',
    operation_id: 'listEventCorrections',
    summary: 'Who voided or replaced an event, when and why',
    description: 'Every correction that was asked for, with its state.',
    tag,
    access: 'event:read',
    params: idParams,
    success: 200,
    answer: z
      .object({ items: z.array(CorrectionAnswer).meta({ description: 'All of them, oldest first.' }) })
      .meta({ id: 'ListEventCorrectionsResponse' }),
    handle: async ({ params }, { services, scope }) => ({
      items: (await listCorrections(services.postgres, scope, params.id)).map(shown),
    }),
  }),
];

type EventCorrectionInput = { id: string; action: Correction['action']; replacement: string | null; reason: string };

async function correct(
  { services, scope, principal, received_at: now }: Context,
  { id, ...input }: EventCorrectionInput,
) {
  const { user_id } = principal;
  getFairShare(services).admit(scope, { corrections: 1 }, now.getTime());
  return shown(await requestCorrection(services, scope, { ...input, event_id: id, user_id, now }));
}

function shown({ id, event_id, action, reason, requested_by, requested_at, state, applied_at }: Correction) {
  return { id, event_id, action, reason, requested_by, requested_at, state, applied_at };
}

/** The event's own bytes, so that its numbers keep their digits. */
function replacementIn(context: Context, id: string): { replacement: string; reason: string } {
  const bytes: Buffer = context.request.body;
  checkBodySize(bytes);
  const text = bytes.toString('utf8');
  let body: { event?: unknown; reason?: unknown };
  try {
    body = parseJson(text) as typeof body;
  } catch {
    throw invalid('body', 'must be valid JSON');
  }
  checkKeys(ReplaceEventRequest, body, context);
  const why = reason.safeParse(body?.reason);
  if (!why.success) throw invalid('reason', 'is required, with at most 1000 characters');
  const replacement = properties(text).get('event')?.text ?? '';
  const fault = findEventFault(body.event) ?? findKeyFault(replacement, { start: 0, end: replacement.length });
  if (fault) throw invalid(fault.field === '' ? 'event' : `event.${fault.field}`, fault.why);
  const { event_id } = body.event as { event_id?: string | null };
  if (event_id && event_id !== id) throw invalid('event.event_id', `must be ${id} or absent`);
  return { replacement, reason: why.data };
}
