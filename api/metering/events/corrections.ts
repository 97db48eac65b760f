/** POST /events/{id}/void and /events/{id}/replace, and the list of corrections: our addition to the interface. */

import { z } from 'zod';
import { requestCorrection } from '../../../actions/metering/events/request-correction.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { parseJson } from '../../../core/foundation/json/parse.ts';
import { CORRECTION_ACTIONS, CORRECTION_STATES } from '../../../core/metering/correction.ts';
import { findEventFault, findKeyFault } from '../../../core/metering/event/accept.ts';
import { checkBodySize } from '../../../core/metering/event/body-size.ts';
import { properties } from '../../../core/metering/event-text.ts';
import { type Correction, listCorrections } from '../../../storage/progress/corrections.ts';
import { checkKeys } from '../../http/ignored-keys.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { getFairShare } from './fair-share.ts';
import { IngestEventRequest } from './schema.ts';

const tag = 'Events';
const reason = z
  .string()
  .trim()
  .min(1)
  .max(1000)
  .meta({ description: 'Reason, 1 to 1,000 characters. It is stored with the user and the time.' });

const VoidEventRequest = z.object({ reason }).meta({ id: 'VoidEventRequest', example: { reason: 'sent by a test' } });
export const ReplaceEventRequest = z
  .object({
    event: IngestEventRequest.meta({ description: 'Complete event with the correct content.' }),
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

/** Fields of a correction in all answers. */
export const correctionFields = {
  action: z
    .enum(CORRECTION_ACTIONS)
    .meta({ description: 'Kind of the correction: `void` removes the event, `replace` replaces its content.' }),
  reason: z.string().meta({ description: 'Reason from the request.' }),
  requested_by: z.string().meta({ description: 'User of the request; `pipeline` if the stores rejected the event.' }),
  requested_at: z.string().meta({ description: 'Time of the request.' }),
  state: z.enum(CORRECTION_STATES).meta({
    description:
      'State: `requested` before it has effect, `applied` once usage includes it, `unknown_event` if no event with this id was counted.',
  }),
  applied_at: z.string().nullable().meta({ description: 'Time at which the correction took effect; null before.' }),
};

export const CorrectionAnswer = z
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
    summary: 'Void an event',
    description:
      'Removes an accepted event from all usage. Usage and open drafts are updated. Final invoices do not change; the charge for the event is deducted from the next invoice. The answer confirms the request; `GET /events/{id}/corrections` shows when it has effect. A voided event cannot be replaced.',
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
    summary: 'Replace an event',
    description:
      'Replaces the content of an accepted event under its id. Usage and open drafts are updated. Final invoices do not change; the difference is on the next invoice. The answer confirms the request; `GET /events/{id}/corrections` shows when it has effect. Refused for a voided event.',
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
    summary: 'List the corrections of an event',
    description: 'Returns all corrections of the event with their user, time, reason and state.',
    tag,
    access: 'event:read',
    params: idParams,
    success: 200,
    answer: z
      .object({ items: z.array(CorrectionAnswer).meta({ description: 'Corrections, oldest first.' }) })
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

function replacementIn(context: Context, id: string): { replacement: string; reason: string } {
  const { body, replacement } = parseReplacement(context, { id, shape: ReplaceEventRequest });
  const why = reason.safeParse(body.reason);
  if (!why.success) throw invalid('reason', 'is required, with at most 1000 characters');
  return { replacement, reason: why.data };
}

type SentReplacement = { event?: unknown; reason?: unknown };

/** Returns the body, and the original text of its event, so that the numbers of the event keep their digits. */
export function parseReplacement(
  context: Context,
  { id, shape }: { id: string; shape: z.ZodObject },
): { body: SentReplacement; replacement: string } {
  const bytes: Buffer = context.request.body;
  checkBodySize(bytes);
  const text = bytes.toString('utf8');
  let body: SentReplacement;
  try {
    body = parseJson(text) as SentReplacement;
  } catch {
    throw invalid('body', 'must be valid JSON');
  }
  checkKeys(shape, body, context);
  const replacement = properties(text).get('event')?.text ?? '';
  const fault = findEventFault(body?.event) ?? findKeyFault(replacement, { start: 0, end: replacement.length });
  if (fault) throw invalid(fault.field === '' ? 'event' : `event.${fault.field}`, fault.why);
  const { event_id } = body.event as { event_id?: string | null };
  if (event_id && event_id !== id) throw invalid('event.event_id', `must be ${id} or absent`);
  return { body, replacement };
}
