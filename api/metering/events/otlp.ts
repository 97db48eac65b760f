/** POST /otlp/v1/metrics: OpenTelemetry metrics become events (docs/rules/opentelemetry.md). */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { appendEvents, splitIntoBodies, toOneBody } from '../../../actions/metering/events/append-events.ts';
import { type SeriesPoint, takeCumulativePoints } from '../../../actions/metering/events/take-cumulative.ts';
import { FarthingError, invalid } from '../../../core/foundation/error.ts';
import { parseShape } from '../../../core/foundation/shaped.ts';
import { findEventFault } from '../../../core/metering/event/accept.ts';
import {
  formatProperties,
  fromOtlpMetrics,
  type Identity,
  OtlpMetrics,
  type PointEvent,
  type PointFault,
} from '../../../core/metering/event/otlp-metrics.ts';
import { formatOtlpAnswer, formatOtlpError, parseOtlpProtobuf } from '../../../core/metering/event/otlp-protobuf.ts';
import { checkSizes } from '../../../core/metering/event/otlp-sizes.ts';
import { readBody } from '../../http/body-text.ts';
import { setErrorHeaders } from '../../http/errors.ts';
import { checkKeys } from '../../http/ignored-keys.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { getFairShare } from './fair-share.ts';
import { OtlpMetricsAnswer, OtlpMetricsRequest } from './schema.ts';

/** Maximum size of a body. It bounds the delay of other requests: reading and checking this many bytes takes some tenths of a second. */
const BODY_LIMIT = 8 * 1024 * 1024;
/** Maximum size of the event of a point, far below that of a record of the log. */
const EVENT_BYTES_MAX = 1_048_576;
const NAMED_MAX = 10;
const PROTOBUF = 'application/x-protobuf';

export const otlpRoutes: Route[] = [
  route({
    method: 'post',
    path: '/otlp/v1/metrics',
    operation_id: 'ingestOtlpMetrics',
    summary: 'Ingest OpenTelemetry metrics',
    description:
      'Accepts OTLP over HTTP in JSON or protobuf, as exporters and collectors send it to the endpoint `/v1/otlp`. Each data point of a sum or a histogram is an event; that of a cumulative metric has the usage since the last value of its series. `partialSuccess` names the rejected points. If no point was accepted, the request is refused with 400. Repeated points count once: [OpenTelemetry](/docs/rules/opentelemetry.md).',
    tag: 'Events',
    access: 'event:write',
    body: OtlpMetricsRequest,
    raw_body: true,
    also_takes: { [PROTOBUF]: { schema: z.string().meta({ format: 'binary' }), example: '' } },
    takes_bytes: PROTOBUF,
    body_limit: BODY_LIMIT,
    success: 200,
    answer: OtlpMetricsAnswer,
    idempotency: 'same',
    async handle(_input, context) {
      if (!isProtobuf(context)) return take(readBody(context).value, context);
      await answerProtobuf(context);
      return undefined;
    },
  }),
];

const isProtobuf = ({ request }: Context) => request.is(PROTOBUF) !== false;

/** Answers in protobuf, faults too, as the protocol requires. Temporary errors are left to the caller: the status says all. */
async function answerProtobuf(context: Context): Promise<void> {
  const { response } = context;
  try {
    const { partialSuccess } = await take(parseOtlpProtobuf(context.request.body), context);
    response.status(200).type(PROTOBUF).end(formatOtlpAnswer(partialSuccess));
  } catch (error) {
    if (!(error instanceof FarthingError) || error.http_status_code >= 500) throw error;
    setErrorHeaders(response, error);
    response.status(error.http_status_code).type(PROTOBUF).end(formatOtlpError(error.message));
  }
}

async function take(value: unknown, context: Context): Promise<z.output<typeof OtlpMetricsAnswer>> {
  checkSizes(value);
  checkKeys(OtlpMetricsRequest, value, context);
  const { events, faults } = checked(parseShape(OtlpMetrics, value, 'body'));
  const points = events.length + faults.length;
  if (events.length > 0) faults.push(...(await append(context, events)));
  if (faults.length === 0) return { partialSuccess: null };
  if (faults.length === points) throw invalid('resourceMetrics', whyNot(faults));
  return { partialSuccess: { rejectedDataPoints: String(faults.length), errorMessage: whyNot(faults) } };
}

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

/** Appends the events; returns the faults of their sizes, and those that the last values of cumulative series show. */
async function append(context: Context, events: readonly PointEvent[]): Promise<PointFault[]> {
  const { services, scope, received_at: now, request } = context;
  getFairShare(services).admit(scope, { events: events.length, bytes: request.body.length }, now.getTime());
  const hashId = createIdHasher();
  const cumulative: PointEvent[] = [];
  const points: SeriesPoint[] = [];
  const deltas: { bytes: Buffer; event_id: string }[] = [];
  const tooLong: PointFault[] = [];
  for (const event of events) {
    const event_id = hashId(event.identity);
    const bytes = Buffer.from(toEventText(event_id, event));
    if (bytes.length > EVENT_BYTES_MAX)
      tooLong.push({
        metric: event.fields.event_name,
        why: `a point must not be longer than ${EVENT_BYTES_MAX} bytes`,
      });
    else if (event.cumulative === null) deltas.push({ event_id, bytes });
    else {
      cumulative.push(event);
      points.push(toSeriesPoint(event_id, event, event.cumulative));
    }
  }
  await appendDeltas(context, deltas);
  const faults = await takeCumulativePoints(services, scope, { points, now });
  return [...tooLong, ...faults.map(({ index, why }) => ({ metric: cumulative[index]!.fields.event_name, why }))];
}

/** Appends one body at a time. A client without an answer repeats the request; events that were appended count once. */
async function appendDeltas(
  { services, scope, received_at: now }: Context,
  deltas: readonly { bytes: Buffer; event_id: string }[],
): Promise<void> {
  for (const body of splitIntoBodies(deltas)) await appendEvents(services.log, scope, { ...toOneBody(body), now });
}

function toSeriesPoint(
  event_id: string,
  event: PointEvent,
  { series, start_nano, time_nano }: NonNullable<PointEvent['cumulative']>,
): SeriesPoint {
  return {
    event_id,
    series: createHash('sha256').update(series).digest('hex').slice(0, 40),
    point: { start_nano, time_nano, value: event.value, count: event.count },
    toEvent: (value, count) => toEventText(event_id, { ...event, value, count }),
  };
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

function toEventText(event_id: string, event: PointEvent): string {
  const head = JSON.stringify({ event_id, ...event.fields }).slice(0, -1);
  return `${head},"properties":${formatProperties(event)}}`;
}
