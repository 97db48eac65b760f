/** Formats the error that ends a process. An error that an operator can fix is one line; any other error includes its stack. */
import { FarthingError } from '../core/foundation/error.ts';

/** Beginnings of the error messages of config.ts and storage/embedded. These messages name the fault that an operator can fix. */
const FOR_PEOPLE =
  /^(configuration|((A|The) )?(built-in|data directory|file system of|stores of an earlier run|ClickHouse|Postgres|package) )/;

export function explain(error: unknown): string {
  const { code, port, message, stack, cause } = error as Partial<NodeJS.ErrnoException> & { port?: number };
  if (code === 'EADDRINUSE') return `port ${port} is taken: set PORT (or INTERNAL_PORT) to another one`;
  if (code === 'EACCES') return `not allowed: ${message}`;
  if (error instanceof FarthingError) return cause instanceof Error ? `${message} (${cause.message})` : message!;
  return FOR_PEOPLE.test(message ?? '') ? message! : (stack ?? String(error));
}
