/** POST /otlp/v1/metrics: metrics of OpenTelemetry are taken as events (docs/rules/opentelemetry.md). */
import { createHash } from 'node:crypto';
import { appendEvents, asOneBody } from '../../actions/events/append-events.ts';
import { invalid } from '../../core/error.ts';
import { EVENTS_PER_REQUEST_MAX, faultOfEvent } from '../../core/event/accept.ts';
import { eventsOfMetrics, OtlpMetrics, type PointEvent, type PointFault } from '../../core/event/otlp-metrics.ts';
import { shaped } from '../../core/shaped.ts';
import { bodyOf } from '../http/body-text.ts';
import { type Context, type Route, route } from '../http/route.ts';
import { fairShareOf } from './fair-share.ts';
import { OtlpMetricsAnswer, OtlpMetricsRequest } from './schema.ts';

const POINTS_MAX = 50_000;
const NAMED_MAX = 10;

export const otlpRoutes: Route[] = [
  route({
    method: 'post',
    path: '/otlp/v1/metrics',
    operation_id: 'ingestOtlpMetrics',
    summary: 'Ingest metrics of OpenTelemetry',
    description:
      'OTLP over HTTP in JSON, as exporters and collectors send it to the endpoint `/v1/otlp`. Each data point of a sum or a histogram with delta temporality is an event; what is none is named in `partialSuccess`, and refused with 400 where nothing was taken. The same points sent again count once: [OpenTelemetry](/docs/rules/opentelemetry.md).',
    tag: 'Events',
    access: 'event:write',
    body: OtlpMetricsRequest,
    raw_body: true,
    success: 200,
    answer: OtlpMetricsAnswer,
    once: 'same',
    async handle(_input, context) {
      const { events, faults } = checked(shaped(OtlpMetrics, bodyOf(context).value, 'body'));
      if (events.length + faults.length > POINTS_MAX)
        throw invalid('resourceMetrics', `must not hold more than ${POINTS_MAX} data points`);
      if (events.length === 0 && faults.length > 0) throw invalid('resourceMetrics', whyNot(faults));
      if (events.length > 0) await append(context, events);
      if (faults.length === 0) return { partialSuccess: null };
      return { partialSuccess: { rejectedDataPoints: String(faults.length), errorMessage: whyNot(faults) } };
    },
  }),
];

/** A text that is too long, say, is a fault of the point, and not of all. */
function checked(metrics: OtlpMetrics): { events: PointEvent[]; faults: PointFault[] } {
  const { events, faults } = eventsOfMetrics(metrics);
  const good = events.filter(({ fields }) => {
    const fault = faultOfEvent(fields);
    if (fault) faults.push({ metric: fields.event_name, why: `${fault.field} ${fault.why}` });
    return fault === undefined;
  });
  return { events: good, faults };
}

/** Each metric once, with what is wrong. */
function whyNot(faults: readonly PointFault[]): string {
  const told = [...new Set(faults.map(({ metric, why }) => (metric === '' ? why : `${metric}: ${why}`)))];
  const more = told.length > NAMED_MAX ? `; and ${told.length - NAMED_MAX} more` : '';
  return told.slice(0, NAMED_MAX).join('; ') + more;
}

/** A thousand after the other: who gets no answer sends all of them again, and what has arrived counts once. */
async function append(context: Context, events: readonly PointEvent[]): Promise<void> {
  const { services, scope, received_at: now, request } = context;
  fairShareOf(services).admit(scope, { events: events.length, bytes: request.body.length }, now.getTime());
  for (let from = 0; from < events.length; from += EVENTS_PER_REQUEST_MAX) {
    const some = events.slice(from, from + EVENTS_PER_REQUEST_MAX).map(asBytes);
    await appendEvents(services.log, scope, { ...asOneBody(some), now });
  }
}

function asBytes({ identity, fields, properties }: PointEvent): { bytes: Buffer; event_id: string } {
  const event_id = `otlp_${createHash('sha256').update(identity).digest('hex').slice(0, 40)}`;
  const head = JSON.stringify({ event_id, ...fields }).slice(0, -1);
  return { bytes: Buffer.from(`${head},"properties":${properties}}`), event_id };
}
