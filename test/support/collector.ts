/** An OpenTelemetry collector that accepts OTLP over HTTP in JSON and stores the spans. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export type CollectedSpan = {
  readonly name: string;
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_id: string | undefined;
  readonly links: readonly { trace_id: string; span_id: string }[];
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly is_failed: boolean;
  readonly duration_ms: number;
};

export type Collector = {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** Headers of each request. */
  readonly headers: readonly Readonly<Record<string, unknown>>[];
  stop(): Promise<void>;
};

export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const headers: Record<string, unknown>[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const isTraces = request.method === 'POST' && request.url === '/v1/traces';
    const body = await json(request);
    if (isTraces) spans.push(...spansOf(body as Sent));
    headers.push(request.headers);
    response.writeHead(isTraces ? 200 : 404, { 'content-type': 'application/json' }).end('{}');
  };
  const server = createServer((request, response) => void take(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Returns the names from the root of its trace on, for each span. `root` is the parent of the root. */
export function treeOf(spans: readonly CollectedSpan[], root: string | undefined): string[] {
  const byId = new Map(spans.map((span) => [span.span_id, span]));
  const pathOf = (span: CollectedSpan): string => {
    if (span.parent_id === root) return span.name;
    const parent = byId.get(span.parent_id ?? '');
    return `${parent ? pathOf(parent) : 'lost'} > ${span.name}`;
  };
  return spans.map(pathOf);
}

/** Names of the wire format: https://opentelemetry.io/docs/specs/otlp/, "JSON Protobuf Encoding". */
type Pairs = { key: string; value: Record<string, unknown> }[];
type Sent = {
  resourceSpans: { resource: { attributes: Pairs }; scopeSpans: { spans: SentSpan[] }[] }[];
};
type SentSpan = {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  links?: { traceId: string; spanId: string }[];
  attributes: Pairs;
  status: { code?: number };
  startTimeUnixNano: string;
  endTimeUnixNano: string;
};

function spansOf({ resourceSpans }: Sent): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => collected(span, valuesOf(resource.attributes)))),
  );
}

function collected(span: SentSpan, resource: Record<string, unknown>): CollectedSpan {
  return {
    name: span.name,
    trace_id: span.traceId,
    span_id: span.spanId,
    parent_id: span.parentSpanId || undefined,
    links: (span.links ?? []).map(({ traceId, spanId }) => ({ trace_id: traceId, span_id: spanId })),
    attributes: valuesOf(span.attributes),
    resource,
    is_failed: span.status.code === 2,
    duration_ms: Number((BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1_000_000n),
  };
}

/** The wire format writes 64-bit integers as text. */
function valuesOf(pairs: Pairs): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map(({ key, value }) => [key, 'intValue' in value ? Number(value.intValue) : Object.values(value)[0]]),
  );
}
