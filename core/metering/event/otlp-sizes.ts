/**
 * Limits the size of an OpenTelemetry request (docs/rules/opentelemetry.md, "With a collector") before its shape is validated, because a
 * small compressed request may contain long lists of empty objects. Attributes are limited too, because those of a resource are part of the
 * identity of each of its points.
 */
import { invalid } from '../../foundation/error.ts';

export const POINTS_MAX = 10_000;
/** Maximum number of attributes per resource, scope or point; exporters allow 128 by default. */
const ATTRIBUTES_MAX = 1_000;
/** Maximum number of resources, scopes and metrics of a request in total. */
const GROUPS_MAX = 20_000;
/** Maximum number of attributes of a request in total. */
const ATTRIBUTES_IN_ALL_MAX = 200_000;

type OtlpCounts = { points: number; groups: number; attributes: number };

/** Throws if a limit is exceeded. A member that should be a list or an object and is not is rejected later, by the shape. */
export function checkSizes(request: unknown): void {
  const counted: OtlpCounts = { points: 0, groups: 0, attributes: 0 };
  for (const of_resource of group(request, 'resourceMetrics', counted)) {
    countAttributes(toMembers(of_resource).resource, counted);
    for (const of_scope of group(of_resource, 'scopeMetrics', counted)) {
      countAttributes(toMembers(of_scope).scope, counted);
      for (const metric of group(of_scope, 'metrics', counted)) countPoints(metric, counted);
    }
  }
}

/** Counts the points of a metric, including those of unknown kinds and of misspelt keys, because each of these is reported. */
function countPoints(metric: unknown, counted: OtlpCounts): void {
  for (const kind of Object.values(toMembers(metric)))
    for (const points of [listIn(kind, 'dataPoints'), listIn(kind, 'data_points')]) {
      counted.points += points.length;
      if (counted.points > POINTS_MAX) throw tooMany(`${POINTS_MAX} data points`);
      for (const point of points) countAttributes(point, counted);
    }
}

function countAttributes(of: unknown, counted: OtlpCounts): void {
  const { length } = listIn(of, 'attributes');
  if (length > ATTRIBUTES_MAX) throw tooMany(`${ATTRIBUTES_MAX} attributes of one resource, scope or data point`);
  counted.attributes += length;
  if (counted.attributes > ATTRIBUTES_IN_ALL_MAX) throw tooMany(`${ATTRIBUTES_IN_ALL_MAX} attributes`);
}

function group(of: unknown, name: string, counted: OtlpCounts): readonly unknown[] {
  const list = listIn(of, name);
  counted.groups += list.length;
  if (counted.groups > GROUPS_MAX) throw tooMany(`${GROUPS_MAX} resources, scopes and metrics`);
  return list;
}

function toMembers(value: unknown): Readonly<Record<string, unknown>> {
  return Object(value) as Readonly<Record<string, unknown>>;
}

function listIn(of: unknown, name: string): readonly unknown[] {
  const list = toMembers(of)[name];
  return Array.isArray(list) ? list : [];
}

function tooMany(what: string) {
  return invalid('resourceMetrics', `must not hold more than ${what}: send smaller requests`);
}
