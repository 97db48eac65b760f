/**
 * The answers that the OpenAPI document declares for an operation: statuses and content types. Each answer in the tests is compared with
 * them (test/support/declared.ts).
 */
import type { Route } from './route.ts';

export const ERRORS = {
  400: ['validation_error', 'name: is required'],
  401: ['permission_denied', 'the header x-api-key is missing'],
  403: ['permission_denied', 'this needs the permission meter:write'],
  404: ['not_found', 'meter meter_01 not found'],
  408: ['validation_error', 'the request did not come to its end in time'],
  409: ['already_exists', 'a record with this lookup_key exists already'],
  413: ['validation_error', 'request body too large'],
  417: ['validation_error', 'the header Expect may ask for 100-continue alone'],
  422: ['validation_error', 'Idempotency-Key: was used for another request'],
  429: ['too_many_requests', 'too many requests: try again in 2 seconds'],
  431: ['validation_error', 'the headers of the request are too large'],
  500: ['internal_error', 'an unexpected error occurred'],
  503: ['service_unavailable', 'the database is not available, try again'],
} as const;

/** Statuses of refusals and failures, as text. */
export function listErrorStatuses(route: Route): string[] {
  const { method, access, body, takes_file, signed } = route;
  const is_public = access === 'public';
  const takes_body = body !== undefined || takes_file !== undefined;
  return Object.keys(ERRORS).filter((status) => {
    if (status === '401') return !is_public || signed !== undefined || takes_body;
    // A public request with a body, such as a sign-in, can be refused too.
    if (status === '403' || status === '429') return !is_public || takes_body;
    // Another change can be first; a test clock that advances lets no other change in between.
    if (status === '409') return method !== 'get';
    // An operation without a body reads and refuses one, too.
    if (status === '413' || status === '417') return method !== 'get';
    if (status === '422') return method === 'post' && !is_public;
    return true;
  });
}

/** Content types of the success. */
export function listContentTypes({ answer, file_type, other_file_types = [] }: Route): string[] {
  const files = file_type === undefined ? [] : [file_type, ...other_file_types];
  return [...(answer ? ['application/json'] : []), ...files];
}
