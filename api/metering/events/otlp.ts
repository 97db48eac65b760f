/** POST /otlp/v1/metrics: OpenTelemetry metrics become events (docs/rules/opentelemetry.md). */
import { createHash } from 'node:crypto';
import { appendEvents, toOneBody } from '../../../actions/metering/events/append-events.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { parseShape } from '../../../core/foundation/shaped.ts';
import { EVENTS_PER_REQUEST_MAX, findEventFault } from '../../../core/metering/event/accept.ts';
import {
  fromOtlpMetrics,
  type Identity,
  OtlpMetrics,
  type PointEvent,
  type PointFault,
} from '../../../core/metering/event/otlp-metrics.ts';
import { checkSizes } from '../../../core/metering/event/otlp-sizes.ts';
import { readBody } from '../../http/body-text.ts';
import { checkKeys } from '../../http/ignored-keys.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { getFairShare } from './fair-share.ts';
import { OtlpMetricsAnswer, OtlpMetricsRequest } from './schema.ts';

/** Maximum size of a body. It bounds the delay of other requests: reading and checking this many bytes takes some tenths of a second. */
const BODY_LIMIT = 8 * 1024 * 1024;
const NAMED_MAX = 10;

export const otlpRoutes: Route[] = [
  route({
    method: 'post',
    path: '/otlp/v1/metrics',
    operation_id: 'ingestOtlpMetrics',
    summary: 'Ingest OpenTelemetry metrics',
    description:
      'Accepts OTLP over HTTP in JSON, as exporters and collectors send it to the endpoint `/v1/otlp`. Each data point of a sum or a histogram with delta temporality is an event. `partialSuccess` names the rejected points. If no point was accepted, the request is refused with 400. Repeated points count once: [OpenTelemetry](/docs/rules/opentelemetry.md).',
    tag: 'Events',
    access: 'event:write',
    body: OtlpMetricsRequest,
    raw_body: true,
    body_limit: BODY_LIMIT,
    success: 200,
    answer: OtlpMetricsAnswer,
    idempotency: 'same',
    async handle(_input, context) {
      const { value } = readBody(context);
      checkSizes(value);
      checkKeys(OtlpMetricsRequest, value, context);
      const { events, faults } = checked(parseShape(OtlpMetrics, value, 'body'));
      if (events.length === 0 && faults.length > 0) throw invalid('resourceMetrics', whyNot(faults));
      if (events.length > 0) await append(context, events);
      if (faults.length === 0) return { partialSuccess: null };
      return { partialSuccess: { rejectedDataPoints: String(faults.length), errorMessage: whyNot(faults) } };
    },
  }),
];

/** Checks the points. A fault of one point, such as a text that is too long, rejects this point only. */
function checked(metrics: OtlpMetrics): { events: PointEvent[]; faults: PointFault[] } {
  const { events, faults } = fromOtlpMetrics(metrics);
  const good = events.filter(({ fields }) => {
    const fault = findEventFault(fields);
    if (fault) faults.push({ metric: fields.event_name, why: `${fault.field} ${fault.why}` });
    return fault === undefined;
  });
  return { events: good, faults };
}

/** Lists each faulty metric once, with the reason. */
function whyNot(faults: readonly PointFault[]): string {
  const reasons = [...new Set(faults.map(({ metric, why }) => (metric === '' ? why : `${metric}: ${why}`)))];
  const more = reasons.length > NAMED_MAX ? `; and ${reasons.length - NAMED_MAX} more` : '';
  return reasons.slice(0, NAMED_MAX).join('; ') + more;
}

/** Appends 1,000 events at a time. A client without an answer repeats the request; events that were appended count once. */
async function append(context: Context, events: readonly PointEvent[]): Promise<void> {
  const { services, scope, received_at: now, request } = context;
  getFairShare(services).admit(scope, { events: events.length, bytes: request.body.length }, now.getTime());
  const hashId = createIdHasher();
  for (let from = 0; from < events.length; from += EVENTS_PER_REQUEST_MAX) {
    const some = events.slice(from, from + EVENTS_PER_REQUEST_MAX).map((event) => asBytes(event, hashId));
    await appendEvents(services.log, scope, { ...toOneBody(some), now });
  }
}

/** Hashes the common part of consecutive points once. */
function createIdHasher(): (identity: Identity) => string {
  let of: string | undefined;
  let hash = createHash('sha256');
  return ({ common, own }) => {
    if (common !== of) {
      of = common;
      hash = createHash('sha256').update(common);
    }
    return `otlp_${hash.copy().update(own).digest('hex').slice(0, 40)}`;
  };
}

function asBytes(
  { identity, fields, properties }: PointEvent,
  hashId: (identity: Identity) => string,
): { bytes: Buffer; event_id: string } {
  const event_id = hashId(identity);
  const head = JSON.stringify({ event_id, ...fields }).slice(0, -1);
  return { bytes: Buffer.from(`${head},"properties":${properties}}`), event_id };
}
