/** Errors of a request with lists inside: which part of the form shows them. */
import { ApiError } from '../../client/client.ts';

/** The message of an error below `path`, unless an input shows it: the rest of its path matches `shown`. */
export function findUnshown(error: Error | null, path: string, shown: RegExp): string | undefined {
  if (!(error instanceof ApiError) || !error.field?.startsWith(path)) return undefined;
  const rest = error.field.slice(path.length);
  return (rest === '' || /^[.[]/.test(rest)) && !shown.test(rest) ? error.message : undefined;
}
