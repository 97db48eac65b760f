/** Errors as the last words of a process: what a person can do something about is one line, anything else keeps its stack. */
import { FarthingError } from '../core/error.ts';

/** How config.ts and storage/embedded begin what they have to say. */
const FOR_PEOPLE = /^(configuration|((A|The) )?(built-in|data directory|ClickHouse|Postgres|package) )/;

export function explain(error: unknown): string {
  const { code, message, stack, cause } = error as { code?: string; message?: string; stack?: string; cause?: unknown };
  if (code === 'EADDRINUSE') return 'the port is taken: set PORT to another one';
  if (code === 'EACCES') return `not allowed: ${message}`;
  if (error instanceof FarthingError) return cause instanceof Error ? `${message} (${cause.message})` : message!;
  return FOR_PEOPLE.test(message ?? '') ? message! : (stack ?? String(error));
}
