/** Errors of the API that name a field of the request, such as `line_items[0].amount`, and the inputs that show them. */
import type { ReactElement } from 'react';
import { ApiError } from '../client/client.ts';
import { showApiText } from './api-text.ts';

/** The message of an error for one field of the request; `line_items[0].amount` belongs to `line_items`, too. */
export function findFieldError({ error }: { error: Error | null }, field: string): ReactElement | undefined {
  return findRest(error, field) === null ? undefined : showMessage(error);
}

/** The message of an error for exactly this field, without its name, for an input in a list. */
export function findExactError(error: Error | null, field: string): ReactElement | undefined {
  return findRest(error, field) === '' ? showMessage(error, `${field}: `) : undefined;
}

/** The message of an error for `field`, unless an input below it shows the error: the rest of its path matches `shown`. */
export function findUnshownError(error: Error | null, field: string, shown: RegExp): ReactElement | undefined {
  const rest = findRest(error, field);
  return rest === null || shown.test(rest) ? undefined : showMessage(error);
}

/** The path of an error below `field`, such as `[0].amount`; empty for the field itself, null for another field. */
function findRest(error: Error | null, field: string): string | null {
  if (!(error instanceof ApiError) || !error.field?.startsWith(field)) return null;
  const rest = error.field.slice(field.length);
  return rest === '' || /^[.[]/.test(rest) ? rest : null;
}

function showMessage(error: Error | null, name = ''): ReactElement | undefined {
  return error ? showApiText(error.message.replace(name, '')) : undefined;
}
