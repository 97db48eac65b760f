/** The command that sends one event, for the shells and languages of the page. */
import { HOUR_MS } from '../../../core/foundation/time/durations.ts';
import { quoteShell } from '../../client/shell-quote.ts';

export type SampleEvent = {
  readonly event_name: string;
  readonly external_customer_id: string;
  readonly properties: Readonly<Record<string, string | number>>;
};

export const COMMAND_LANGUAGES = ['curl', 'typescript', 'python', 'opentelemetry'] as const;
export type CommandLanguage = (typeof COMMAND_LANGUAGES)[number];

type CommandInput = {
  /** Address of the API, with `/v1`. */
  readonly url: string;
  /** The key, or null for a variable of the shell. */
  readonly key: string | null;
  readonly event: SampleEvent;
};

const KEY_VARIABLE = 'FARTHING_API_KEY';

export const COMMANDS: { readonly [Language in CommandLanguage]: (input: CommandInput) => string } = {
  curl: formatCurlCommand,
  typescript: formatTypeScript,
  python: formatPython,
  opentelemetry: formatOpenTelemetry,
};

function formatCurlCommand({ url, key, event }: CommandInput): string {
  return [
    `curl ${url}/events -H "x-api-key: ${key ?? `$${KEY_VARIABLE}`}" \\`,
    `  -H 'content-type: application/json' -d ${quoteShell(formatEvent(event))}`,
  ].join('\n');
}

function formatTypeScript({ url, key, event }: CommandInput): string {
  return [
    '// npm install @flexprice/sdk@2.0.1',
    `import { Flexprice } from '@flexprice/sdk';`,
    '',
    'const client = new Flexprice({',
    `  serverURL: '${url}',`,
    `  apiKeyAuth: ${key === null ? `process.env.${KEY_VARIABLE}` : `'${key}'`},`,
    '});',
    'await client.events.ingestEvent({',
    `  eventName: ${JSON.stringify(event.event_name)},`,
    `  externalCustomerId: ${JSON.stringify(event.external_customer_id)},`,
    `  properties: ${formatProperties({ properties: toTexts(event.properties) })},`,
    '});',
  ].join('\n');
}

function formatPython({ url, key, event }: CommandInput): string {
  return [
    '# pip install requests',
    ...(key === null ? ['import os'] : []),
    'import requests',
    '',
    'requests.post(',
    `    "${url}/events",`,
    `    headers={"x-api-key": ${key === null ? `os.environ["${KEY_VARIABLE}"]` : `"${key}"`}},`,
    '    json={',
    `        "event_name": ${JSON.stringify(event.event_name)},`,
    `        "external_customer_id": ${JSON.stringify(event.external_customer_id)},`,
    `        "properties": ${formatProperties(event)},`,
    '    },',
    ').raise_for_status()',
  ].join('\n');
}

/** A metric is an event: its name is the name of the event, and its attributes are the properties. */
function formatOpenTelemetry({ url, key, event }: CommandInput): string {
  const toValue = (value: string | number) =>
    typeof value === 'number' ? `{"intValue": "${value}"}` : `{"stringValue": ${JSON.stringify(value)}}`;
  const attributes = Object.entries({ external_customer_id: event.external_customer_id, ...event.properties }).map(
    ([name, value]) => `        {"key": ${JSON.stringify(name)}, "value": ${toValue(value)}}`,
  );
  const metric = [
    `{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": ${JSON.stringify(event.event_name)},`,
    '    "sum": {"aggregationTemporality": 1, "isMonotonic": true, "dataPoints": [{"asInt": "1",',
    '      "startTimeUnixNano": "',
  ].join('\n');
  const rest = `",\n      "attributes": [\n${attributes.join(',\n')}]}]}}]}]}]}`;
  // The shell inserts its time between quoted texts. A mark in the text could also be a part of a name.
  const body = [metric, '", "timeUnixNano": "', rest].map(quoteShell).join('$(date +%s)000000000');
  return [
    `# an exporter or a collector needs the endpoint ${url}/otlp and this header; one data point by hand:`,
    `curl ${url}/otlp/v1/metrics -H "x-api-key: ${key ?? `$${KEY_VARIABLE}`}" \\`,
    `  -H 'content-type: application/json' -d ${body}`,
  ].join('\n');
}

function formatEvent({ event_name, external_customer_id, ...event }: SampleEvent): string {
  return [
    '{',
    `  "event_name": ${JSON.stringify(event_name)}, "external_customer_id": ${JSON.stringify(external_customer_id)},`,
    `  "properties": ${formatProperties(event)} }`,
  ].join('\n');
}

function formatProperties({ properties }: Pick<SampleEvent, 'properties'>): string {
  const fields = Object.entries(properties).map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}

/** The published client sends properties as texts; meters read the numbers in them. */
function toTexts(properties: SampleEvent['properties']): Record<string, string> {
  return Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, String(value)]));
}

type MeterShape = {
  readonly event_name: string;
  readonly aggregation: { readonly type: string; readonly field?: string | null; readonly group_by?: string | null };
  readonly filters?: readonly { readonly key: string; readonly values: readonly string[] }[] | null;
};

const FIRST_VALUE = 1840;
const OTHER_VALUE = 640;

/** An event that the first meter counts, and each other meter of its name that accepts the same properties. */
export function buildSampleEvent(meters: readonly MeterShape[], external_customer_id: string): SampleEvent | null {
  const [first] = meters;
  if (!first) return null;
  const properties: Record<string, string | number> = {};
  for (const { key, values } of first.filters ?? []) if (values[0] !== undefined) properties[key] = values[0];
  for (const { event_name, aggregation, filters } of meters) {
    const { field } = aggregation;
    const isMet = (filters ?? []).every(({ key, values }) => values.includes(String(properties[key])));
    if (event_name === first.event_name && field && isMet && properties[field] === undefined)
      properties[field] = Object.values(properties).includes(FIRST_VALUE) ? OTHER_VALUE : FIRST_VALUE;
  }
  return { event_name: first.event_name, external_customer_id, properties };
}

export type TrafficEvent = SampleEvent & { readonly timestamp: string };

const TRAFFIC_SPAN_MS = HOUR_MS;
const FACTOR_MAX = 200;

/** Events like the sample over the last hour, with quantities that rise and fall, so that charts and bills have a shape. */
export function buildTraffic(sample: SampleEvent, count: number, now_ms: number): TrafficEvent[] {
  return Array.from({ length: count }, (_, index) => {
    const wave = 1 + Math.sin((index / count) * 4 * Math.PI);
    const factor = 1 + Math.floor((wave * FACTOR_MAX) / 2);
    const properties = Object.entries(sample.properties).map(([key, value]) => [
      key,
      typeof value === 'number' ? value * factor + index : value,
    ]);
    // Events are dense and sparse in turn.
    const place = (index + 0.5) / count + 0.055 * Math.sin((index / count) * 4 * Math.PI);
    return {
      ...sample,
      properties: Object.fromEntries(properties) as SampleEvent['properties'],
      timestamp: new Date(now_ms - TRAFFIC_SPAN_MS * (1 - place)).toISOString(),
    };
  });
}

/** The name with two neighbouring letters exchanged, as a hurried hand writes it. */
export function misspell(name: string): string {
  const at = Math.max(0, name.length - 4);
  const [first = '', second = ''] = [name[at], name[at + 1]];
  return `${name.slice(0, at)}${second}${first}${name.slice(at + 2)}`;
}
