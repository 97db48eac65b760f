/**
 * Turns failures of Xero into `ProviderError`s (developer.xero.com, "Response codes and errors"). A validation error has the number 10
 * whatever its cause, so causes are recognized by their text.
 */
import { ProviderError } from '../provider-error.ts';
import type { ProviderAnswer } from '../send-request.ts';
import { LIMIT_PAUSE_SECONDS } from '../status-error.ts';

const MESSAGES_MAX = 5;

/** Reads the messages of a validation error, or the title of another error; null if the body is not an error of Xero. */
function readMessages(body: unknown): readonly string[] | null {
  const { Message, Elements, Title, Detail } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const messages = Array.isArray(Elements) ? Elements.flatMap(listMessages) : [];
  if (messages.length > 0) return messages;
  const texts = [Message, Title, Detail].filter((one): one is string => typeof one === 'string' && one !== '');
  return texts.length === 0 ? null : texts;
}

/** Lists the messages of a record that was refused. */
export function listMessages(record: unknown): string[] {
  const { ValidationErrors } = (record ?? {}) as { ValidationErrors?: unknown };
  if (!Array.isArray(ValidationErrors)) return [];
  return ValidationErrors.flatMap(({ Message }) => (typeof Message === 'string' ? [Message] : []));
}

/** Builds the error of an answer without a record; null if its body cannot be read. */
export function buildAnswerError({ status, body, retry_after_seconds }: ProviderAnswer): ProviderError | null {
  const messages = readMessages(body);
  if (messages === null) return null;
  // The detail quotes the time of the token, never the token.
  if (status === 401 || status === 403)
    return new ProviderError('person', describe(messages), { is_unauthorized: true });
  if (status === 404) return new ProviderError('person', describe(messages), { is_missing: true });
  if (status === 429)
    return new ProviderError('wait', describe(messages), {
      retry_after_seconds: retry_after_seconds ?? LIMIT_PAUSE_SECONDS,
    });
  const isRefused = status >= 400 && status < 500 && status !== 408 && status !== 409;
  return isRefused ? buildRefusal(messages) : new ProviderError('wait', describe(messages), { retry_after_seconds });
}

export function buildRefusal(messages: readonly string[]): ProviderError {
  return new ProviderError('person', describe(messages));
}

function describe(messages: readonly string[]): string {
  return `Xero: ${messages.slice(0, MESSAGES_MAX).join('; ')}`;
}

/** Whether the name or number is that of another record. */
export function isTaken(error: unknown): error is ProviderError {
  return (
    error instanceof ProviderError && error.error_class === 'person' && /must be unique|already/i.test(error.message)
  );
}
