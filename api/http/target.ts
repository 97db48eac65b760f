/**
 * The record that a request reads or changes: its ETag in the answer, and the condition `If-Match` of a change
 * (docs/rules/records.md, "Lost updates"). The models compare the state (storage/models/foundation/target-record.ts).
 */
import { FarthingError, invalid } from '../../core/foundation/error.ts';
import { currentRequestContext, type TargetRecord } from '../../storage/foundation/request-context.ts';
import { toEntityTag } from '../../storage/models/foundation/target-record.ts';
import type { Context, Route } from './route.ts';

/** Builds the target of a request; its id is the last parameter of the path, or that which the route finds. */
export function buildTarget(route: Route, context: Context): TargetRecord {
  const { request } = context;
  const id = route.findTarget?.(context) ?? findId(route.path, request.params as Record<string, string>);
  const given = request.get('if-match');
  if (given === undefined || route.method === 'get') return { id, made: new Map() };
  if (!hasCondition(route)) throw invalid('If-Match', 'is taken by PUT and DELETE of one record, not here');
  return { id, if_match: parseCondition(given), made: new Map() };
}

/** Whether the operation takes `If-Match`: it changes or deletes the record that its path names. */
export function hasCondition({ method, path, findTarget, has_no_tag }: Route): boolean {
  const isChange = method === 'put' || method === 'delete';
  return isChange && !has_no_tag && (findTarget !== undefined || path.includes('/:'));
}

/** Whether the operation reads or changes the record that its path names, and answers it with its ETag. */
export function hasEntityTag(route: Route): boolean {
  return answersTarget(route) && route.answer !== undefined;
}

/** Whether the answer is the record that the path names. */
function answersTarget({ path, findTarget, has_no_tag, method }: Route): boolean {
  if (has_no_tag || method === 'post' || method === 'delete') return false;
  return findTarget !== undefined || isNamedByPath(path);
}

const isNamedByPath = (path: string) => path.slice(path.lastIndexOf('/') + 1).startsWith(':');

function findId(path: string, params: Readonly<Record<string, string>>): string | undefined {
  const last = path.slice(path.lastIndexOf('/') + 1);
  return last.startsWith(':') ? params[last.slice(1)] : params.id;
}

/** Returns the ETag of an answer that is a record; undefined for any other. */
export function findEntityTag(route: Route, value: unknown): string | undefined {
  const target = currentRequestContext()?.target;
  if (target === undefined || route.has_no_tag || typeof value !== 'object' || value === null) return undefined;
  // A balance has the id of its wallet, and is not the wallet.
  if (route.method === 'get' && !answersTarget(route)) return undefined;
  const { id } = value as { id?: unknown };
  // A setting without a row has no id, and a few answers have the record as one of their fields.
  const isSame = id === (target.row as { id?: unknown } | undefined)?.id || (!id && answersTarget(route));
  const row = isSame ? target.row : target.made.get(String(id));
  return row && toEntityTag(row);
}

/** Throws if a change was done without a comparison with its condition, which would be a fault of this service. */
export function requireCompared(route: Route): void {
  const target = currentRequestContext()?.target;
  if (target?.if_match !== undefined && target.held_by === undefined)
    throw new FarthingError('internal_error', `${route.operation_id} did not compare the record with If-Match`);
}

/** Parses `*` or a list of entity tags (RFC 9110, section 13.1.1). A weak tag never matches. */
function parseCondition(given: string): Set<string> | '*' {
  if (given.trim() === '*') return '*';
  const tags: string[] = [];
  // A tag may contain commas.
  const rest = given.replace(TAG, (tag) => `${PLACE}${tags.push(tag)}`);
  const places = rest.split(',').flatMap((part) => part.trim() || []);
  if (tags.length === 0 || places.join() !== tags.map((_, index) => `${PLACE}${index + 1}`).join())
    throw invalid('If-Match', 'must be * or a list of entity tags, such as "abc"');
  return new Set(tags.filter((tag) => !tag.startsWith('W/')));
}

const TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;
/** Stands for a tag. It is no character of a header. */
const PLACE = '\0';
